"""A plan with its costs, and the budgets that it should keep to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.model.errors import BraidError
from braid.plan.orders import show_orders
from braid.plan.tree import Join, Tree, show_tree

if TYPE_CHECKING:
    from braid.plan.rounds import Orders


@dataclass(frozen=True, slots=True)
class Budget:
    """What a plan may cost: CPU per unit of time, and memory; infinite if not said."""

    cpu: float = math.inf
    memory: float = math.inf

    def __post_init__(self) -> None:
        """Refuse what nothing could be measured against."""
        for name, value in (("CPU", self.cpu), ("memory", self.memory)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise BraidError(
                    f"the {name} budget is {value!r}",
                    hint="a budget is a number, 0 or more; leave it out for none",
                )

    def allows(self, cpu: float, memory: float) -> bool:
        """Whether costs are within both budgets."""
        return cpu <= self.cpu and memory <= self.memory

    def pressure(self, cpu: float, memory: float) -> float:
        """The larger part that costs take of their budgets; at most 1 if both are kept."""
        return max(_part(cpu, self.cpu), _part(memory, self.memory))


def _part(cost: float, budget: float) -> float:
    if budget == 0:
        return math.inf if cost else 0.0
    return cost / budget


@dataclass(frozen=True, slots=True)
class Plan:
    """A tree of joins with its probe orders, and what it costs.

    A plan is `qualified` if it keeps within the budgets that it was looked for with. `tree` and
    `orders` are what `--plan` and `--order` take.
    """

    streams: tuple[str, ...]
    shape: Tree
    probes: Orders
    cpu: float
    memory: float
    qualified: bool

    @property
    def tree(self) -> str:
        """The tree as text, such as `((a b) c)`."""
        return show_tree(self.shape, self.streams)

    @property
    def orders(self) -> str:
        """The probe orders as text; joins of two inputs have only one, which is left out."""
        chosen = {origin: others for origin, others in self.probes.items() if len(others) > 1}
        return show_orders(chosen, self.streams)

    @property
    def text(self) -> str:
        """Both in one, as the engine takes and tells a plan."""
        return f"{self.tree}; {self.orders}" if self.orders else self.tree

    @property
    def is_binary(self) -> bool:
        """Whether all of its joins have two inputs."""
        return all(len(others) == 1 for others in self.probes.values())

    @property
    def is_mjoin(self) -> bool:
        """Whether it is one join of all streams, without intermediate results."""
        return not any(isinstance(child, Join) for child in self.probes)
