"""What is known of a running query: its streams, its memory and its backlog."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from braid.model.errors import BraidError
from braid.model.join_graph import JoinGraph, Pair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Certainty(StrEnum):
    """How a number came about."""

    EXACT = "exact"
    """All rows were counted."""
    ESTIMATED = "estimated"
    """A sample was, or it follows from other numbers."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Measure:
    """A number and how far to trust it; unknown ones have no value."""

    value: float | None
    certainty: Certainty

    def __post_init__(self) -> None:
        """Refuse values of unknown numbers, and numbers without a finite value."""
        known = self.certainty is not Certainty.UNKNOWN
        if known != (self.value is not None and math.isfinite(self.value)):
            raise BraidError(
                f"a number that is {self.certainty} cannot be {self.value!r}",
                hint="finite numbers are exact or estimated; None is unknown",
            )

    @classmethod
    def exact(cls, value: float) -> Measure:
        """A number that was counted."""
        return cls(value, Certainty.EXACT)

    @classmethod
    def estimated(cls, value: float) -> Measure:
        """A number from a sample."""
        return cls(value, Certainty.ESTIMATED)


UNKNOWN = Measure(None, Certainty.UNKNOWN)


@dataclass(frozen=True)
class DataStatistics:
    """Rates of streams, and selectivities of the pairs that have a predicate."""

    rates: Mapping[str, Measure]
    selectivity: Mapping[Pair, Measure]

    def graph(
        self,
        window: float | Mapping[str, float],
        *,
        keys: Sequence[Sequence[str]] = (),
        row_bytes: Mapping[str, float] | None = None,
        assumed_selectivity: float = 1.0,
    ) -> JoinGraph:
        """A graph to optimize, with an assumption in place of unknown selectivities.

        Without a rate there is no plan: a stream with an unknown one is refused.
        """
        for name, rate in self.rates.items():
            if rate.value is None:
                raise BraidError(
                    f"the rate of stream {name!r} is unknown",
                    hint="wait until rows of every stream have been counted",
                )
        return JoinGraph(
            {name: rate.value or 0.0 for name, rate in self.rates.items()},
            {
                pair: assumed_selectivity if measure.value is None else measure.value
                for pair, measure in self.selectivity.items()
            },
            window,
            keys,
            row_bytes,
        )

    def change_since(self, before: DataStatistics) -> tuple[float, str]:
        """The largest part by which a number has changed, and which one it is.

        Half means that it has doubled or halved. A number that was unknown before has changed
        altogether; one that is unknown now has not changed.
        """
        changes = {
            name: _change(before.rates.get(name), now) for name, now in self.rates.items()
        }
        changes |= {
            f"{one} with {other}": _change(before.selectivity.get((one, other)), now)
            for (one, other), now in self.selectivity.items()
        }
        name = max(changes, key=lambda each: changes[each], default="")
        return changes.get(name, 0.0), name


def _change(before: Measure | None, now: Measure) -> float:
    if now.value is None:
        return 0.0
    if before is None or before.value is None:
        return 1.0
    larger = max(before.value, now.value)
    return 1.0 - min(before.value, now.value) / larger if larger > 0 else 0.0


@dataclass(frozen=True)
class Load:
    """How much there is: in states, before the joins, and between them.

    `memory` and its budget are in one unit. `unread_rows` are with the sources still,
    `waiting_rows` have come and are not joined yet.
    `intermediate_rows` are those that each inner join keeps, by the join's tree as text.
    """

    memory: Measure = UNKNOWN
    memory_budget: float = math.inf
    unread_rows: Measure = UNKNOWN
    waiting_rows: Measure = UNKNOWN
    intermediate_rows: Mapping[str, Measure] = field(default_factory=dict)


@dataclass(frozen=True)
class Situation:
    """A running query at one moment of its own time; `searched_s` is what a search took."""

    elapsed_ms: float
    data: DataStatistics
    load: Load = Load()
    searched_s: float = 0.0
