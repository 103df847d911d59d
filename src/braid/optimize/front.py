"""Plans of which none is better than another in both CPU and memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator


class Priced(Protocol):
    """Anything with both costs."""

    @property
    def cpu(self) -> float:
        """CPU per unit of time."""
        ...

    @property
    def memory(self) -> float:
        """The size of all states."""
        ...


P = TypeVar("P", bound=Priced)


class Front(Generic[P]):
    """The best of all that were added, by rising CPU and so by falling memory."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._cpu: list[float] = []
        self._plans: list[P] = []

    def __iter__(self) -> Iterator[P]:
        """From the least CPU to the least memory."""
        return iter(self._plans)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._plans)

    def covers(self, cpu: float, memory: float) -> bool:
        """Whether a plan is here that costs no more of either."""
        place = bisect_right(self._cpu, cpu)
        return place > 0 and self._plans[place - 1].memory <= memory

    def add(self, plan: P) -> bool:
        """Take a plan in, unless one like it or better is here; drop those that it beats."""
        if self.covers(plan.cpu, plan.memory):
            return False
        lower = upper = bisect_left(self._cpu, plan.cpu)
        while upper < len(self._plans) and self._plans[upper].memory >= plan.memory:
            upper += 1
        self._cpu[lower:upper] = [plan.cpu]
        self._plans[lower:upper] = [plan]
        return True
