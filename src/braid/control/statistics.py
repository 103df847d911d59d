"""What strategies are shown: frozen numbers about workers and their groups.

How they are collected is in `braid.control.tally`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from braid.record.move import Move

Ids = NDArray[np.int64]
Counts = NDArray[np.int64]
Weights = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GroupTable:
    """The groups of one worker in one space: one array per figure, one place per group.

    `results` counts the whole history of a group; `recent_results` and `recent_rows` (rows
    inserted) are per batch, weighted towards the latest ones. `last_insert` is a batch number.
    """

    group: Ids
    memory_bytes: Counts
    disk_bytes: Counts
    rows: Counts
    results: Counts
    recent_results: Weights
    recent_rows: Weights
    last_insert: Counts

    @classmethod
    def of(cls, group: Any, **columns: Any) -> GroupTable:
        """A table of some figures; those that are not given are 0."""
        ids = np.asarray(group, np.int64)
        made: dict[str, NDArray[Any]] = {"group": ids}
        for name in cls.__slots__[1:]:
            kind = np.float64 if name.startswith("recent") else np.int64
            made[name] = np.zeros(len(ids), kind)
            made[name][:] = columns.pop(name, 0)
        if columns:
            raise TypeError(f"no such figure: {', '.join(columns)}")
        for array in made.values():
            array.flags.writeable = False
        return cls(**made)

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self.group)

    @property
    def total_bytes(self) -> Counts:
        """The size of each group, in memory and on disk."""
        total: Counts = self.memory_bytes + self.disk_bytes
        return total

    def places(self, groups: Sequence[int]) -> Ids:
        """Where some groups are in the table; -1 for those that are not."""
        ids = np.asarray(groups, np.int64)
        if not len(self):
            return np.full(len(ids), -1, np.int64)
        order = np.argsort(self.group, kind="stable")  # quick, as most tables are sorted
        near = np.searchsorted(self.group, ids, sorter=order)
        places = order[np.minimum(near, len(order) - 1)]
        return np.where(self.group[places] == ids, places, -1)

    def productivity(self, recent: bool = False) -> Weights:
        """Results per byte of each group; a group without a byte has productivity 0."""
        results = self.recent_results if recent else self.results
        size = self.total_bytes
        rate: Weights = np.divide(
            results, size, out=np.zeros(len(self), np.float64), where=size > 0
        )
        return rate


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """One worker: what it holds now, and what it did since the last snapshot.

    `made_results` are join results that new rows have made, in all rounds: not rows written,
    which may be groups of them, nor what a clean-up made. It was idle while it waited, for rows
    or for others, within a batch and between batches. A `budget_bytes` of None is unbounded. A
    worker that is not `movable` takes part in no relocation for now, one that is not
    `spillable` in no spill, as when its disk is full.
    """

    worker: int
    memory_bytes: int
    disk_bytes: int = 0
    budget_bytes: int | None = None
    busy_ms: float = 0.0
    idle_ms: float = 0.0
    waiting_rows: int = 0
    input_rows: int = 0
    made_results: int = 0
    movable: bool = True
    spillable: bool = True
    tables: Mapping[int, GroupTable] = field(default_factory=dict, compare=False)

    @property
    def total_bytes(self) -> int:
        """All of its state, in memory and on disk."""
        return self.memory_bytes + self.disk_bytes

    @property
    def groups(self) -> int:
        """How many groups it has, in all spaces."""
        return sum(len(table) for table in self.tables.values())

    @property
    def room_bytes(self) -> float:
        """What may still come into its memory; less than 0 if there is too much already."""
        return np.inf if self.budget_bytes is None else self.budget_bytes - self.memory_bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole run at the end of a batch.

    `elapsed_ms` is the time since the run began, by the clock. With `defer`, what a group on
    disk owes waits for the clean-up, and a group with a part on disk stays with its worker
    until then. `last_relocation_ms` is when the latest relocation ended, by the same clock.
    Groups of `fixed` spaces never move.
    """

    batch: int
    elapsed_ms: float
    workers: tuple[WorkerLoad, ...]
    moves: tuple[Move, ...] = ()
    spilling: frozenset[int] = frozenset()
    last_relocation_ms: float | None = None
    defer: bool = True
    fixed: frozenset[int] = frozenset()

    @property
    def moving(self) -> frozenset[int]:
        """Workers that send or receive groups at the moment."""
        return frozenset(
            worker for move in self.moves for worker in (move.sender, move.receiver)
        )

    @property
    def engaged(self) -> frozenset[int]:
        """Workers that spill, send or receive at the moment, and must finish that first."""
        return self.moving | self.spilling
