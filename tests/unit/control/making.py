"""Snapshots for tests, from a few figures per worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from braid.control.statistics import GroupTable, Snapshot, WorkerLoad

if TYPE_CHECKING:
    from collections.abc import Sequence


def worker(number: int, group_bytes: Sequence[int], **figures: Any) -> WorkerLoad:
    """A worker with one space; its groups are numbered from 100 times its own number."""
    columns = {
        name: figures.pop(name) for name in list(figures) if name in GroupTable.__slots__
    }
    ids = [100 * number + place for place in range(len(group_bytes))]
    table = GroupTable.of(ids, memory_bytes=list(group_bytes), **columns)
    disk = int(table.disk_bytes.sum())
    return WorkerLoad(number, sum(group_bytes), disk_bytes=disk, tables={0: table}, **figures)


def snapshot(
    *workers: WorkerLoad, batch: int = 9, elapsed_ms: float = 1e6, **other: Any
) -> Snapshot:
    """A snapshot late enough for any timer."""
    return Snapshot(batch, elapsed_ms, workers, **other)
