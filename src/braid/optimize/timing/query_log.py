"""The query log: which plan served which statistics, for streams whose habits return."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from braid.model.checks import require_within

if TYPE_CHECKING:
    from braid.optimize.plan import Plan
    from braid.optimize.timing.statistics import DataStatistics


@dataclass(frozen=True)
class Served:
    """Statistics, and the plan that was chosen for them, as text."""

    data: DataStatistics
    tree: str
    orders: str


@dataclass(frozen=True, kw_only=True)
class QueryLog:
    """Recalls the plan of the most similar statistics, if no number differs by `tolerance`.

    The log has at most `capacity` entries, the latest made or recalled last; the first go
    first.
    """

    tolerance: float = 0.2
    capacity: int = 64
    entries: tuple[Served, ...] = field(default=(), metadata={"memory": True})

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        require_within("tolerance", self.tolerance, 0, 1)
        require_within("capacity", self.capacity, 0)

    def recall(self, data: DataStatistics) -> tuple[QueryLog, Served | None]:
        """The entry whose statistics are nearest, if they are near enough."""
        if not self.entries:
            return self, None
        found = min(self.entries, key=lambda served: _distance(data, served.data))
        if _distance(data, found.data) > self.tolerance:
            return self, None
        others = tuple(served for served in self.entries if served is not found)
        return replace(self, entries=(*others, found)), found

    def remember(self, data: DataStatistics, plan: Plan) -> QueryLog:
        """The log with one more entry, in place of any for similar statistics."""
        others = [s for s in self.entries if _distance(data, s.data) > self.tolerance]
        entries = (*others, Served(data, plan.tree, plan.orders))
        return replace(self, entries=entries[max(0, len(entries) - self.capacity) :])


def _distance(one: DataStatistics, other: DataStatistics) -> float:
    """The largest change, in whichever direction it is seen; so unknown numbers are far off."""
    return max(one.change_since(other)[0], other.change_since(one)[0])
