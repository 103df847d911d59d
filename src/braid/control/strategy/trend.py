"""How a run develops, as `auto` remembers it: growth of the state, and how busy workers are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from braid.control.proposal import Spill
    from braid.control.statistics import Snapshot, WorkerLoad

_NEWEST = 0.25
"""The weight of the newest batch in what is smoothed."""


@dataclass(frozen=True)
class LoadTrend:
    """Smoothed figures since `batches` ago.

    The growth is that of all memory in the cluster, with what was spilled put back: it stays
    what it is when groups are spilled or moved. (That of all state would be less: with windows,
    what is on disk shrinks while memory grows.)
    """

    batches: int = 0
    memory_bytes: int = 0
    growth_bytes: float = 0.0
    busy_batches: int = 0
    busy_ms: Mapping[int, float] = field(default_factory=dict)

    def after(self, snapshot: Snapshot) -> LoadTrend:
        """The trend with one more batch."""
        memory = sum(load.memory_bytes for load in snapshot.workers)
        grown = max(0, memory - self.memory_bytes)
        known = self.batches > 1
        growth = _smooth(self.growth_bytes, grown) if known else float(grown)
        busy = {
            load.worker: _smooth(self.busy_ms[load.worker], load.busy_ms)
            if load.worker in self.busy_ms
            else load.busy_ms
            for load in snapshot.workers
        }
        # Before the first batch the state was empty, or is that of an earlier run.
        growth = growth if self.batches else 0.0
        return LoadTrend(self.batches + 1, memory, growth, self.busy_batches + 1, busy)

    def with_spills(self, spills: Iterable[Spill]) -> LoadTrend:
        """The trend once these spills are done."""
        spilled = sum(spill.amount_bytes for spill in spills)
        return replace(self, memory_bytes=self.memory_bytes - spilled)

    def without_work(self) -> LoadTrend:
        """The trend after groups moved: how busy workers are must be learned anew."""
        return replace(self, busy_batches=0, busy_ms={})

    def growth(self, snapshot: Snapshot) -> dict[int, float]:
        """The growth of each worker's state per batch, parted by what was inserted of late."""
        inflow = {load.worker: _inflow_bytes(load) for load in snapshot.workers}
        total = sum(inflow.values())
        if total <= 0:
            return dict.fromkeys(inflow, 0.0)
        return {worker: self.growth_bytes * (flow / total) for worker, flow in inflow.items()}


def recent_rows(load: WorkerLoad) -> float:
    """Rows inserted per batch of late."""
    return float(sum(table.recent_rows.sum() for table in load.tables.values()))


def row_bytes(load: WorkerLoad) -> float:
    """Bytes of a row of a worker's state."""
    rows = sum(int(table.rows.sum()) for table in load.tables.values())
    return load.total_bytes / rows if rows else 0.0


def _inflow_bytes(load: WorkerLoad) -> float:
    return recent_rows(load) * max(row_bytes(load), np.finfo(float).tiny)


def _smooth(before: float, now: float) -> float:
    return before + _NEWEST * (now - before)
