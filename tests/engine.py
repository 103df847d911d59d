"""Braid without Spark: the real workers, ladders and checkpoint, driven in one process.

Only the split and the shuffles are made here (in NumPy instead of Catalyst), so that laws can
be tried on hundreds of random cases.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from braid.join.chores import Chores
from braid.join.closing import closing_us
from braid.join.moves import begin_move
from braid.join.outcome import commit_before_first, next_commit
from braid.join.outgoing import hashed_slots
from braid.join.report import Report
from braid.join.step import make_step
from braid.join.wire import NULL_KEY, NULL_TIME, REPORT, TAG_BITS, TAGS, tag_of
from braid.join.worker import evaluate
from braid.migrate import begun, ended, given_up, is_over, resumed
from braid.state.checkpoint import Checkpoint, Identity
from braid.state.moving import installed, reactivated, settled
from braid.state.resharing import reshared
from braid.state.runs import group_of
from braid.state.store import DISK, MEMORY, Ownership, RunStore

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from braid.join.chores import Ranges
    from braid.join.plan import JoinPlan
    from braid.migrate import Way
    from braid.plan.rounds import Round
    from braid.state.commit import Commit
    from braid.state.move import Move


def spark_hash(kind: pa.DataType, value: Any) -> int:
    """Spark's xxhash64 of one integer-like value, by an independent implementation."""
    number = pa.scalar(value, kind).cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    form = "<q" if kind.bit_width == 64 else "<i"
    return xxhash.xxh64_intdigest(struct.pack(form, number.as_py()), seed=42)


def any_hash(key: tuple[Any, ...], bits: int) -> int:
    """A hash for keys of other types; few `bits` make keys collide."""
    zero = tuple(0.0 if part == 0 and isinstance(part, float) else part for part in key)
    return xxhash.xxh64_intdigest(repr(zero).encode()) >> (64 - bits) << (64 - bits)


def hash_key(plan: JoinPlan, space: int, key: tuple[Any, ...], bits: int) -> int:
    """The hash of a key in a space."""
    if plan.wire.exact[space]:
        column = plan.query.keys[plan.rounds.spaces[space].keys[0]].columns[0]
        return spark_hash(plan.wire.types[column], key[0])
    return any_hash(key, bits)


def on_the_wire(
    plan: JoinPlan, number: int, port_number: int, rows: pa.Table, hash_bits: int = 64
) -> pa.RecordBatch:
    """What the split would send of a stream's rows by one of its ports."""
    a_round, wire = plan.rounds.rounds[number], plan.wire
    port = a_round.ports[port_number]
    stream = port.stream
    assert stream is not None
    first = next(
        place
        for r in range(len(plan.rounds.rounds))
        for place in enumerate(plan.rounds.rounds[r].ports)
        if place[1].stream == stream
    )[1]
    names = [name for key in plan.query.keys if (name := key.of(stream)) is not None]
    joined_on = [plan.query.keys[key].of(stream) for key in plan.rounds.spaces[port.space].keys]
    rows_of = {name: rows.column(name).to_pylist() for name in {*names, *joined_on}}
    times = rows.column(wire.event_time).cast(pa.int64()).to_pylist()
    packed, hashes, kept = [], [], []
    for place, at in enumerate(times):
        tag = tag_of(a_round, port_number)
        key = tuple(rows_of[name][place] for name in joined_on)
        if any(rows_of[name][place] is None for name in names):
            tag = NULL_KEY
        elif at is None:
            tag = NULL_TIME
        joins = tag not in (NULL_KEY, NULL_TIME)
        if not joins and port is not first:
            continue
        hashed = hash_key(plan, port.space, key, hash_bits) if joins else 0
        if joins and not goes_through(plan, port.tree, hashed):
            continue
        kept.append(place)
        packed.append((at or 0) << TAG_BITS | tag)
        hashes.append(hashed)
    layout = wire.layout(port)
    filled = dict(zip(layout.slots, layout.columns, strict=True))
    slots = [
        rows.column(filled[slot].column).combine_chunks().take(pa.array(kept, pa.int64()))
        if slot in filled
        else pa.nulls(len(kept), wire.slots[slot])
        for slot in wire.slots_of(a_round)
    ]
    columns = [
        pa.array(packed, pa.int64()),
        pa.array(np.array(hashes, np.uint64).view(np.int64)),
        *slots,
        *([pa.nulls(len(kept), pa.string())] if number else []),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wire.schema(a_round, reports=number > 0))


def goes_through(plan: JoinPlan, tree: int, hashed: int) -> bool:
    """Whether rows of a hash are routed through a tree."""
    if not plan.routes:
        return True
    group = int(group_of(np.array([hashed], np.uint64), plan.groups)[0])
    return any(first <= group < end for first, end in plan.routes[tree])


def rehashed(
    plan: JoinPlan, a_round: Round, batch: pa.RecordBatch, hash_bits: int
) -> pa.RecordBatch:
    """What Catalyst makes of what a worker sent: rows without a hash get one."""
    hashes = batch.column("hash").to_pylist()
    tags = batch.column("at").to_numpy() & TAGS
    for place, tag in enumerate(tags.tolist()):
        if tag == REPORT or hashes[place] is not None:
            continue
        port = a_round.ports[a_round.sent[tag]]
        key = tuple(
            batch.column(f"slot{slot}")[place].as_py() for slot in hashed_slots(plan, port)
        )
        unsigned = hash_key(plan, port.space, key, hash_bits)
        hashes[place] = int(np.uint64(unsigned).view(np.int64))
    columns = batch.columns
    columns[1] = pa.array([h or 0 for h in hashes], pa.int64())
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


@dataclass
class Engine:
    """All workers of a query in this process, on a real checkpoint in `folder`."""

    plan: JoinPlan
    folder: Path
    workers: int
    hash_bits: int = 64
    keep_late: bool = False
    chores: Chores = field(default_factory=Chores)
    results: list[pa.Table] = field(default_factory=list)
    filled_at_once: int = 3
    reports: list[Report] = field(default_factory=list)

    def __post_init__(self) -> None:
        plan = self.plan
        identity = Identity(plan.query.text, "columns", plan.groups)
        first = commit_before_first(plan, self.workers)
        self.checkpoint = Checkpoint.open(self.folder / "checkpoint", identity, first)
        last = self.checkpoint.last_commit()
        last, self.plan = resumed(last, plan, self.workers)
        spaces = [state.space for state in self.plan.rounds.states]
        self.commit: Commit = reshared(settled(last), spaces, self.workers)

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
            self.chores,
            self.results,
        )

    def stores(self, worker: int) -> dict[int, RunStore]:
        tiers = {tier: self.folder / tier / str(worker) for tier in (MEMORY, DISK)}
        for folder in tiers.values():
            folder.mkdir(parents=True, exist_ok=True)
        return {
            space: RunStore(
                tiers,
                self.checkpoint.log,
                Ownership(self.plan.groups, self.commit.owned(space, worker)),
                self.chores.memory_bytes,
            )
            for space in range(len(self.commit.assignments))
        }

    def batch(
        self,
        rows: dict[int, pa.Table],
        *,
        at_end: bool = False,
        chores: dict[int, Chores] | None = None,
    ) -> pa.Table:
        """Evaluate one batch on all workers, commit it, and return its results."""
        self._carry_change_on()
        number = self.commit.batch + 1
        staging = self.folder / "results" / str(number)
        closing = closing_us(self.plan, self.commit, at_end=at_end)
        sent: list[pa.RecordBatch] = []
        for place, a_round in enumerate(self.plan.rounds.rounds):
            wire = [rehashed(self.plan, a_round, batch, self.hash_bits) for batch in sent]
            wire += [
                on_the_wire(self.plan, place, port_number, rows[port.stream], self.hash_bits)
                for port_number, port in enumerate(a_round.ports)
                if port.stream is not None and port.stream in rows
            ]
            sent = []
            for worker, share in enumerate(self._shares(a_round, wire)):
                step = make_step(
                    self.plan,
                    self.commit,
                    number=place,
                    worker=worker,
                    closing_us=closing,
                    chores=(chores or {}).get(worker, self.chores),
                    results=staging,
                    late=self.folder / "late" if self.keep_late else None,
                )
                sent += evaluate(step, self.stores(worker), share)
        texts = [text for batch in sent for text in batch.column("report").to_pylist()]
        self.reports = [Report.from_json(json.loads(text)) for text in texts]
        self.commit = next_commit(self.plan, self.commit, self.reports, closing_us=closing)
        self.checkpoint.write(self.commit)
        self.checkpoint.sweep(self.commit)
        tables = [pq.read_table(staging / part.file) for part in self.commit.parts]
        self.results.append(pa.concat_tables(tables))
        return self.results[-1]

    def change(self, text: str, way: Way, workers: Collection[int] = ()) -> bool:
        """Begin to change the plan, if it can be changed in this way."""
        start = begun(self.commit, self.plan, text, way, workers)
        if start.obstacle:
            return False
        self.commit, self.plan = start.commit, start.both
        return True

    def give_up_change(self) -> None:
        """Go on with the old plan alone."""
        self.commit, self.plan = given_up(self.commit, self.plan)

    def _carry_change_on(self) -> None:
        """End a change that is over, or have some more groups filled by the next batch."""
        change = self.commit.change
        if change is None:
            return
        if is_over(self.commit, self.plan):
            self.commit, self.plan = ended(self.commit, self.plan)
        elif change.fills:
            filling = min(self.plan.groups, change.filled + self.filled_at_once)
            self.commit = replace(self.commit, change=replace(change, filling=filling))

    def _shares(
        self, a_round: Round, wire: Sequence[pa.RecordBatch]
    ) -> list[list[pa.RecordBatch]]:
        shares: list[list[pa.RecordBatch]] = [[] for _ in range(self.workers)]
        assignments = np.array(self.commit.assignments)
        for batch in wire:
            hashes = batch.column("hash").to_numpy().view(np.uint64)
            tags = batch.column("at").to_numpy() & TAGS
            sent = [a_round.ports[number].space for number in a_round.sent]
            spaces = np.array(sent + [0] * (TAGS + 1))[tags]
            worker = assignments[spaces, group_of(hashes, self.plan.groups)]
            for number, share in enumerate(shares):
                share.append(batch.filter(pa.array(worker == number)))
        return shares

    def move(self, space: int, groups: Ranges, sender: int, receiver: int) -> None:
        """Have groups taken out by the next batch."""
        self.commit = begin_move(self.plan, self.commit, space, groups, sender, receiver)

    def arrive(self, move: Move, *, with_files: bool) -> None:
        """Give groups that were taken out to their receiver, as files or from the log."""
        assert move.runs is not None
        arrived = {}
        for state, run in move.runs.items() if with_files else ():
            rows = self.stores(move.sender)[move.space].read_rows(run)
            if rows is not None:
                store = self.stores(move.receiver)[move.space]
                arrived[state] = installed(store, run, rows)
        self.commit = reactivated(self.commit, move, arrived)

    def all_results(self) -> pa.Table:
        return pa.concat_tables(self.results)
