"""The driver's running account of every group, from which snapshots are made.

A batch is counted on a copy, so a tally that somebody has stays as it is.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from braid.control.statistics import GroupTable, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from braid.control.statistics import Ids, WorkerLoad
    from braid.record.move import Move

    _Places = tuple[Ids, NDArray[Any], NDArray[np.int64]]
    _Sorted = tuple[NDArray[Any], _Places]

HALF_LIFE_BATCHES = 8.0
"""After so many batches, what a group did counts half as recent."""

_FIGURES = tuple(figure.name for figure in fields(GroupTable))[1:]
_LASTING = ("results", "recent_results", "recent_rows", "last_insert")


class Tally:
    """Counts per space and group, since the run began and of late."""

    def __init__(
        self,
        groups: Mapping[int, int],
        half_life_batches: float = HALF_LIFE_BATCHES,
        *,
        known: Sequence[Mapping[str, Any] | None] = (),
    ) -> None:
        """Begin with what is `known`, or nothing; `groups` are the numbers by space."""
        self._decay = 0.5 ** (1.0 / half_life_batches)
        self._spaces = {space: _columns(count) for space, count in groups.items()}
        self._weights = dict.fromkeys(groups, 0.0)
        for space, record in enumerate(known):
            if record is not None:
                self._weights[space] = record["weight"]
                for name in _LASTING:
                    self._spaces[space][name][:] = record[name]
        self._sorted: dict[int, _Sorted] = {}

    def copy(self) -> Tally:
        """The same, to count a batch on."""
        made = Tally({})
        made._decay, made._weights = self._decay, dict(self._weights)
        made._sorted = self._sorted
        made._spaces = {
            space: {name: column.copy() for name, column in columns.items()}
            for space, columns in self._spaces.items()
        }
        return made

    def begin(self) -> None:
        """A batch ended whose counts come next: all before it is a little less recent."""
        for space, columns in self._spaces.items():
            self._weights[space] = self._weights[space] * self._decay + 1.0
            columns["recent_results"] *= self._decay
            columns["recent_rows"] *= self._decay

    def count(
        self, space: int, batch: int, group: ArrayLike, rows: ArrayLike, results: ArrayLike
    ) -> None:
        """Add rows inserted into some groups, each named once, and results that they gave."""
        columns = self._spaces[space]
        ids = np.asarray(group, np.int64)
        inserted, gave = np.asarray(rows, np.int64), np.asarray(results, np.int64)
        columns["results"][ids] += gave
        columns["recent_results"][ids] += gave
        columns["recent_rows"][ids] += inserted
        columns["last_insert"][ids[inserted > 0]] = batch

    def measure(
        self,
        space: int,
        group: ArrayLike,
        memory_bytes: ArrayLike,
        disk_bytes: ArrayLike,
        rows: ArrayLike,
    ) -> None:
        """Set what some groups hold now."""
        columns = self._spaces[space]
        ids = np.asarray(group, np.int64)
        columns["memory_bytes"][ids] = memory_bytes
        columns["disk_bytes"][ids] = disk_bytes
        columns["rows"][ids] = rows

    def records(self) -> tuple[dict[str, Any], ...]:
        """All that cannot be measured anew, by space, to go on from: JSON objects."""
        return tuple(
            {
                "weight": self._weights[space],
                # Two digits behind the point are enough of what fades.
                **{name: np.round(columns[name], 2).tolist() for name in _LASTING},
            }
            for space, columns in sorted(self._spaces.items())
        )

    def snapshot(
        self,
        batch: int,
        elapsed_ms: float,
        loads: Iterable[WorkerLoad],
        assignments: Mapping[int, ArrayLike],
        *,
        moves: Sequence[Move] = (),
        spilling: Iterable[int] = (),
        last_relocation_ms: float | None = None,
        defer: bool = True,
        fixed: Iterable[int] = (),
    ) -> Snapshot:
        """Freeze what is known; `assignments` has every space's worker per group."""
        tables = self.tables(assignments)
        workers = (replace(load, tables=tables.get(load.worker, {})) for load in loads)
        return Snapshot(
            batch,
            elapsed_ms,
            tuple(workers),
            tuple(moves),
            frozenset(spilling),
            last_relocation_ms,
            defer,
            frozenset(fixed),
        )

    def tables(self, assignments: Mapping[int, ArrayLike]) -> dict[int, dict[int, GroupTable]]:
        """Each worker's groups, by space."""
        tables: dict[int, dict[int, GroupTable]] = {}
        for space, assignment in assignments.items():
            order, workers, bounds = self._by_owner(space, np.asarray(assignment))
            arrays = [order, *(self._read(space, name)[order] for name in _FIGURES)]
            for array in arrays:
                array.flags.writeable = False
            for place, worker in enumerate(workers):
                part = slice(bounds[place], bounds[place + 1])
                table = GroupTable(*(array[part] for array in arrays))
                tables.setdefault(int(worker), {})[space] = table
        return tables

    def _by_owner(self, space: int, owners: NDArray[Any]) -> _Places:
        """Where each worker's groups are; sorted anew when something has moved."""
        known = self._sorted.get(space)
        if known is None or not np.array_equal(known[0], owners):
            known = owners.copy(), _places_by_owner(owners)
            self._sorted[space] = known
        return known[1]

    def _read(self, space: int, name: str) -> NDArray[Any]:
        """A column as snapshots show it: what is recent, per batch."""
        column = self._spaces[space][name]
        weight = self._weights[space]
        return column / weight if name.startswith("recent") and weight > 0 else column


def _columns(count: int) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {
        name: np.zeros(count, np.float64 if name.startswith("recent") else np.int64)
        for name in _FIGURES
    }
    columns["last_insert"][:] = -1
    return columns


def _places_by_owner(owners: NDArray[Any]) -> _Places:
    """Groups ordered by their worker, the workers, and where each one's groups begin."""
    # Sixteen bits are sorted by their digits, several times faster than by comparisons.
    small = owners.min(initial=0) >= 0 and owners.max(initial=0) < 2**16
    keys = owners.astype(np.uint16) if small else owners
    order = np.argsort(keys, kind="stable").astype(np.int64)
    ordered = owners[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    return order, ordered[starts], np.append(starts, len(owners))
