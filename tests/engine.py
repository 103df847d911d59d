"""Braid without Spark: the real workers, ladders and checkpoint, driven in one process.

Only the split is made here (in NumPy instead of Catalyst), so that laws can be tried on
hundreds of random cases.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from braid.join.arrivals import wire_schema
from braid.join.outcome import next_commit
from braid.join.wire import TAG_BITS
from braid.join.worker import Report, Step, evaluate
from braid.state.checkpoint import Checkpoint, Identity
from braid.state.commit import Commit, first_commit, reshared
from braid.state.runs import group_of
from braid.state.store import DISK, MEMORY, Ownership, RunStore

if TYPE_CHECKING:
    from pathlib import Path

    from braid.join.plan import JoinPlan


def spark_hash(kind: pa.DataType, value: Any) -> int:
    """Spark's xxhash64 of one integer-like value, by an independent implementation."""
    number = pa.scalar(value, kind).cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    form = "<q" if kind.bit_width == 64 else "<i"
    return xxhash.xxh64_intdigest(struct.pack(form, number.as_py()), seed=42)


def any_hash(key: tuple[Any, ...], bits: int) -> int:
    """A hash for keys of other types; few `bits` make keys collide."""
    zero = tuple(0.0 if part == 0 and isinstance(part, float) else part for part in key)
    return xxhash.xxh64_intdigest(repr(zero).encode()) >> (64 - bits) << (64 - bits)


def on_the_wire(
    plan: JoinPlan, stream: int, rows: pa.Table, hash_bits: int = 64
) -> pa.RecordBatch:
    """What the split would send of these rows."""
    ref, wire = plan.query.streams[stream], plan.wire
    keys = list(zip(*(rows.column(name).to_pylist() for name in ref.key), strict=True))
    times = rows.column(wire.event_time).cast(pa.int64()).to_pylist()
    count = len(plan.streams)
    packed, hashes = [], []
    for key, at in zip(keys, times, strict=True):
        tag = stream
        if any(part is None for part in key):
            tag = count + stream
        elif at is None:
            tag = 2 * count + stream
        packed.append((at or 0) << TAG_BITS | tag)
        if tag != stream:
            hashes.append(0)
        elif wire.exact:
            hashes.append(spark_hash(wire.key_types[0], key[0]))
        else:
            hashes.append(any_hash(key, hash_bits))
    slots = [pa.nulls(rows.num_rows, kind) for kind in wire.slots]
    layout = wire.streams[stream]
    for slot, name in zip(layout.slots, layout.names, strict=True):
        slots[slot] = rows.column(name).combine_chunks()
    columns = [
        pa.array(packed, pa.int64()),
        pa.array(np.array(hashes, np.uint64).view(np.int64)),
        *slots,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wire_schema(plan))


@dataclass
class Engine:
    """All workers of a query in this process, on a real checkpoint in `folder`."""

    plan: JoinPlan
    folder: Path
    workers: int
    hash_bits: int = 64
    keep_late: bool = False
    results: list[pa.Table] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)

    def __post_init__(self) -> None:
        identity = Identity(self.plan.query.text, "columns", self.plan.groups)
        first = first_commit(len(self.plan.streams), self.plan.groups, self.workers)
        self.checkpoint = Checkpoint.open(self.folder / "checkpoint", identity, first)
        self.commit: Commit = reshared(self.checkpoint.last_commit(), self.workers)

    def restart(self, workers: int | None = None) -> Engine:
        """Forget everything but the checkpoint and the results so far."""
        self.checkpoint.close()
        for tier in (MEMORY, DISK):
            for path in (self.folder / tier).rglob("*"):
                if path.is_file():
                    path.unlink()
        return Engine(
            self.plan,
            self.folder,
            workers or self.workers,
            self.hash_bits,
            self.keep_late,
            self.results,
        )

    def store(self, worker: int) -> RunStore:
        tiers = {tier: self.folder / tier / str(worker) for tier in (MEMORY, DISK)}
        for folder in tiers.values():
            folder.mkdir(parents=True, exist_ok=True)
        owned = np.array(self.commit.assignment) == worker
        return RunStore(tiers, self.checkpoint.log, Ownership(self.plan.groups, owned))

    def batch(self, rows: dict[int, pa.Table]) -> pa.Table:
        """Evaluate one batch on all workers, commit it, and return its results."""
        wire = [on_the_wire(self.plan, s, t, self.hash_bits) for s, t in rows.items()]
        number = self.commit.batch + 1
        staging = self.folder / "results" / str(number)
        self.reports = [
            evaluate(self._step(worker, number, staging), self.store(worker), share)
            for worker, share in enumerate(self._shares(wire))
        ]
        self.commit = next_commit(self.plan, self.commit, self.reports)
        self.checkpoint.write(self.commit)
        self.checkpoint.sweep(self.commit)
        tables = [pq.read_table(staging / part.file) for part in self.commit.parts]
        self.results.append(pa.concat_tables(tables))
        return self.results[-1]

    def _step(self, worker: int, number: int, staging: Path) -> Step:
        return Step(
            plan=self.plan,
            batch=number,
            worker=worker,
            watermark_us=self.commit.watermark_us,
            newest_us=self.commit.newest_us,
            ladders=self.commit.ladders[worker],
            results=staging,
            late=self.folder / "late" if self.keep_late else None,
        )

    def _shares(self, wire: list[pa.RecordBatch]) -> list[list[pa.RecordBatch]]:
        shares: list[list[pa.RecordBatch]] = [[] for _ in range(self.workers)]
        assignment = np.array(self.commit.assignment)
        for batch in wire:
            hashes = batch.column(1).to_numpy().view(np.uint64)
            worker = assignment[group_of(hashes, self.plan.groups)]
            for number, share in enumerate(shares):
                share.append(batch.filter(pa.array(worker == number)))
        return shares

    def all_results(self) -> pa.Table:
        return pa.concat_tables(self.results)
