"""What the operations of a join cost; how often a plan does them is in `estimate`.

Costs are in the unit that their constants are in. By default every operation counts 1, and a
plan's CPU is operations per unit of time. `braid.engine.calibrate` measures the constants in
seconds: CPU is then the number of cores that a plan keeps busy.

Both models are linear in the rows that probe and in those that are found. So under either one,
the best order of a join's probes is the one that makes the fewest rows on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_RUN_SHARE = 1 / 8
"""Of a window, the time that a merged run covers at most."""

_WITH_DEAD = 4 / 3
"""Rows of a state, as a multiple of those that may still join, when dead ones are removed."""

Amount = TypeVar("Amount", float, NDArray[np.float64])
"""A number, or one for each of many plans."""


class CostModel(Protocol):
    """The costs of rows that come into a join; never less than 0.

    A model that is `by_key` keeps and sends rows as `braid.optimize.arrangement` has it; under
    any other, each input of a join is kept once, and sending is free.
    """

    by_key: ClassVar[bool]

    def keep(self, rows: Amount, /) -> Amount:
        """The cost of inserting rows into a state, and of purging them in their time."""
        ...

    def probe(self, rows: Amount, matches: Amount, /) -> Amount:
        """The cost of rows that probe, and find so many matches in all; linear in both."""
        ...

    def send(self, rows: Amount, /) -> Amount:
        """The cost of rows that go on to another place, by another key."""
        ...

    def held(self, rows: float, arrivals: float, window: float, /) -> float:
        """How many rows a state holds, of which `rows` may still join.

        So many arrive per unit of time, and `window` is the shortest of their members'.
        """
        ...


@dataclass(frozen=True, slots=True)
class NestedLoops:
    """The dissertation's model: C_i and C_d for a row that is kept, C_j for a pair that joins.

    As in its equations, C_j is paid for pairs that fulfil the predicate only. Looking at the
    others costs nothing here, whatever the name promises.
    """

    by_key: ClassVar[bool] = False

    insert: float = 1.0
    delete: float = 1.0
    join: float = 1.0

    def __post_init__(self) -> None:
        """Refuse constants that are no costs."""
        _check_constants(self)

    def keep(self, rows: Amount, /) -> Amount:
        """C_i + C_d for each row."""
        return rows * (self.insert + self.delete)

    def probe(self, rows: Amount, matches: Amount, /) -> Amount:
        """C_j for each match."""
        return matches * self.join

    def send(self, rows: Amount, /) -> Amount:
        """Nothing: all is in one place."""
        return 0 * rows

    def held(self, rows: float, arrivals: float, window: float, /) -> float:
        """A row is purged when the first of its members leaves its window."""
        return rows


@dataclass(frozen=True, slots=True)
class IndexProbes:
    """Equi-joins as the engine executes them: a search in sorted runs, then the matches.

    The search costs each row that probes, whether it finds anything or not; how large the state
    is hardly matters. So many fruitless probes, which `NestedLoops` gives away, have a price.

    A state keeps a row until all of its run is out of reach, which is the shortest window from
    its youngest member on, and some more; or until it is one of too many dead rows, which is
    sooner for joined ones. And it keeps it for a `lag`, until a batch has told that: about the
    time between two batches, in the graph's unit.
    """

    by_key: ClassVar[bool] = True

    insert: float = 1.0
    purge: float = 1.0
    search: float = 1.0
    match: float = 1.0
    shuffle: float = 1.0
    lag: float = 0.0

    def __post_init__(self) -> None:
        """Refuse constants that are no costs."""
        _check_constants(self)

    def keep(self, rows: Amount, /) -> Amount:
        """Inserting and purging each row."""
        return rows * (self.insert + self.purge)

    def probe(self, rows: Amount, matches: Amount, /) -> Amount:
        """A search for each row that probes, and what each match costs."""
        return rows * self.search + matches * self.match

    def send(self, rows: Amount, /) -> Amount:
        """A shuffle of each row."""
        return rows * self.shuffle

    def held(self, rows: float, arrivals: float, window: float, /) -> float:
        """All that arrives until it is dropped, with its run or as dead rows get too many."""
        by_run = arrivals * (window * (1 + _RUN_SHARE / 2) + self.lag)
        return min(by_run, rows * _WITH_DEAD + arrivals * self.lag)


MODELS: Mapping[str, Callable[[], CostModel]] = {
    "nested-loops": NestedLoops,
    "index": IndexProbes,
}


def _check_constants(model: NestedLoops | IndexProbes) -> None:
    for name in model.__slots__:
        value = getattr(model, name)
        if not 0 <= value < float("inf"):
            raise BraidError(
                f"the cost {name!r} is {value!r}", hint="costs are finite and not below 0"
            )
