"""Which groups of a worker: an order of preference, and as many of the first as it takes.

Nothing is chosen twice, a group without a byte in memory is never chosen, and ties go to the
lower space and group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from braid.model.checks import require_from, require_known

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from braid.control.statistics import Counts, GroupTable, Ids, Weights

    Masks = Mapping[int, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The groups that may be chosen, of all spaces, side by side."""

    space: Ids
    group: Ids
    memory_bytes: Counts
    productivity: Weights
    recent_rows: Weights
    last_insert: Counts

    @classmethod
    def of(
        cls,
        tables: Mapping[int, GroupTable],
        excluded: Masks | None = None,
        recent: bool = False,
    ) -> Candidates:
        """Those with bytes in memory, but for the ones whose place in `excluded` is true."""
        parts: list[list[NDArray[Any]]] = [[np.empty(0, np.int64)] for _ in range(6)]
        for space, table in sorted(tables.items()):
            keep = table.memory_bytes > 0
            if excluded is not None and space in excluded:
                keep = keep & ~excluded[space]
            columns = (
                np.full(len(table), space, np.int64),
                table.group,
                table.memory_bytes,
                table.productivity(recent),
                table.recent_rows,
                table.last_insert,
            )
            for part, column in zip(parts, columns, strict=True):
                part.append(column[keep])
        return cls(*(np.concatenate(part) for part in parts))

    def chosen(self, places: Ids) -> dict[int, tuple[int, ...]]:
        """Groups at some places, by space, in that order."""
        spaces = self.space[places]
        return {
            int(space): tuple(self.group[places[spaces == space]].tolist())
            for space in np.unique(spaces)
        }


@dataclass(frozen=True, slots=True)
class Chooser:
    """An order of preference with its settings.

    `recent` has productivity count what is recent only; `theta_t` is for how many batches a
    group must have had no row to be inactive; `seed` is of the random order, beside the batch.
    """

    order: str = "least-productive"
    recent: bool = False
    theta_t: float = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse unknown orders."""
        require_known("order of groups", self.order, ORDERS)
        require_from("theta_t", self.theta_t, 0)

    def rank(self, candidates: Candidates, batch: int, worker: int = 0) -> Ids:
        """The places of all candidates, the preferred first."""
        keys = ORDERS[self.order](self, candidates, batch, worker)
        # The last key weighs most.
        ranked: Ids = np.lexsort((candidates.group, candidates.space, *reversed(keys)))
        return ranked

    def choose(
        self,
        tables: Mapping[int, GroupTable],
        amount_bytes: float,
        batch: int,
        *,
        worker: int = 0,
        excluded: Masks | None = None,
    ) -> tuple[dict[int, tuple[int, ...]], int]:
        """Groups by space that reach an amount, or all, and their bytes in memory.

        Without the last of them, the amount is not reached.
        """
        return self._choose(first_reaching, tables, amount_bytes, batch, worker, excluded)

    def choose_within(
        self,
        tables: Mapping[int, GroupTable],
        amount_bytes: float,
        batch: int,
        *,
        worker: int = 0,
        excluded: Masks | None = None,
    ) -> tuple[dict[int, tuple[int, ...]], int]:
        """Groups by space that stay within an amount, and their bytes in memory.

        Whatever is preferred and still fits is taken, so that no other one would fit.
        """
        return self._choose(all_fitting, tables, amount_bytes, batch, worker, excluded)

    def _choose(
        self,
        take: Callable[[Ids, Counts, float], Ids],
        tables: Mapping[int, GroupTable],
        amount_bytes: float,
        batch: int,
        worker: int,
        excluded: Masks | None,
    ) -> tuple[dict[int, tuple[int, ...]], int]:
        candidates = Candidates.of(tables, excluded, self.recent)
        ranked = self.rank(candidates, batch, worker)
        places = take(ranked, candidates.memory_bytes, amount_bytes)
        return candidates.chosen(places), int(candidates.memory_bytes[places].sum())


def first_reaching(ranked: Ids, weight: NDArray[Any], amount: float) -> Ids:
    """As many of the first as are needed for their weights to reach an amount."""
    if not amount > 0:
        return ranked[:0]
    needed = int(np.searchsorted(np.cumsum(weight[ranked]), amount)) + 1
    return ranked[:needed]


def all_fitting(ranked: Ids, weight: NDArray[Any], amount: float) -> Ids:
    """The first whose weights stay within an amount; what does not fit is passed over."""
    taken, left = [ranked[:0]], amount
    while len(ranked := ranked[weight[ranked] <= left]):
        sums = np.cumsum(weight[ranked])
        fitting = int(np.searchsorted(sums, left, "right"))
        taken.append(ranked[:fitting])
        left -= sums[fitting - 1]
        ranked = ranked[fitting:]
    return np.concatenate(taken)


def on_disk(tables: Mapping[int, GroupTable]) -> dict[int, NDArray[np.bool_]]:
    """The groups with a part on disk, as a mask for `excluded`."""
    return {space: table.disk_bytes > 0 for space, table in tables.items()}


_Keys = tuple["NDArray[Any]", ...]


def _least_productive(how: Chooser, which: Candidates, batch: int, worker: int) -> _Keys:
    return (which.productivity,)


def _most_productive(how: Chooser, which: Candidates, batch: int, worker: int) -> _Keys:
    return (-which.productivity,)


def _largest(how: Chooser, which: Candidates, batch: int, worker: int) -> _Keys:
    return (-which.memory_bytes,)


def _random(how: Chooser, which: Candidates, batch: int, worker: int) -> _Keys:
    seed = [abs(how.seed), abs(batch), abs(worker)]
    return (np.random.default_rng(seed).permutation(len(which.group)),)


def _inactive(how: Chooser, which: Candidates, batch: int, worker: int) -> _Keys:
    active = batch - which.last_insert <= how.theta_t
    return (active, which.productivity)


ORDERS: dict[str, Callable[[Chooser, Candidates, int, int], _Keys]] = {
    "least-productive": _least_productive,
    "most-productive": _most_productive,
    "largest": _largest,
    "random": _random,
    "inactive": _inactive,
}
"""The orders by name; each gives sort keys, the weightiest first."""
