"""A query's engine on a cluster in this process, driven batch by batch by a test.

The engine is the real one, with its commit, retry, recovery and sweep. A test says what workers
are to do, which groups move and when they arrive, and how many groups a change of plan fills.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import xxhash

from braid.control.adaptation import MemorySettings
from braid.control.control import Control
from braid.control.decider import Decided
from braid.control.migration import Migration
from braid.control.observation import Observation
from braid.control.pacing import Pacing
from braid.control.relocation import Relocation
from braid.engine.clock import DriverClock
from braid.engine.cluster import TryAgain
from braid.engine.engine import Engine
from braid.engine.idleness import Idleness
from braid.engine.loop import BatchLoop
from braid.engine.sink import LastBatch
from braid.events import Journal
from braid.front.sinks import MemorySink, ParquetSink
from braid.local.cluster import LocalCluster
from braid.optimize.cost_model import IndexProbes
from braid.record.checkpoint import Checkpoint, Identity
from braid.record.enact import (
    BeginChange,
    BeginMove,
    EndChange,
    FillUpTo,
    GiveUpChange,
    RecordDraft,
    Resize,
    enact,
)
from braid.record.move import Move
from braid.record.moving import settled
from braid.record.next_commit import commit_before_first
from braid.record.plan_change import begun, is_over, resumed
from braid.record.worker_orders import WorkerOrders
from braid.state.groups import marked
from braid.state.store import DISK, MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from braid.control.decider import BatchSeen
    from braid.engine.cluster import Evaluated
    from braid.local.cluster import LocalJob
    from braid.plan.join_plan import JoinPlan
    from braid.plan.placement import ByHash
    from braid.record.commit import Commit
    from braid.record.enact import Command
    from braid.record.move import MoveKey
    from braid.record.orders import Orders
    from braid.record.plan_change import Way
    from braid.record.report import Report
    from braid.state.groups import Hashes, Ranges
    from braid.state.runs import SortedRun
    from braid.state.store import RunStore


@dataclass(frozen=True)
class Hashing:
    """Hashes of which few `bits` count, so that keys collide."""

    bits: int

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Hashes:
        lists = [column.to_pylist() for column in columns]
        keys = zip(*lists, strict=True) if lists else [()] * rows
        return np.array([self._hash(key) for key in keys], np.uint64)

    def _hash(self, key: tuple[Any, ...]) -> int:
        """One and the same for 0.0 and -0.0, and for all NaN."""
        zero = tuple(0.0 if part == 0 and isinstance(part, float) else part for part in key)
        return (
            xxhash.xxh64_intdigest(repr(zero).encode()) >> (64 - self.bits) << (64 - self.bits)
        )


@dataclass(frozen=True)
class Told:
    """In place of a strategy: workers do as they are told, and nothing is decided."""

    plan: JoinPlan
    worker_orders: Callable[[int], WorkerOrders]
    settings: MemorySettings = field(default_factory=MemorySettings)
    owing_bytes: int = 0
    accepted: tuple[Move, ...] = ()
    is_active: bool = False

    def replanned(self, plan: JoinPlan, commit: Commit) -> Told:
        return replace(self, plan=plan)

    def cleaning_up(self) -> Told:
        return self

    def orders(
        self, commit: Commit, pacing: Pacing, *, changes: bool
    ) -> tuple[WorkerOrders, ...]:
        return tuple(map(self.worker_orders, range(commit.workers)))

    def counted(self, batch: int, reports: Sequence[Report]) -> Told:
        return self

    def observe(self, seen: BatchSeen, under_way: Sequence[Move]) -> Decided[Told]:
        return Decided(self)


@dataclass(frozen=True)
class Still(Migration):
    """In place of what paces changes of plan: the test does."""

    workers: int = 0
    pause_ms: float = 0.0

    def fills_at_once(self, draft: RecordDraft) -> bool:
        return False

    def observe(self, draft: RecordDraft, elapsed_ms: int, pricing: Any) -> Decided[Still]:
        return Decided(self)


class Watched:
    """A cluster whose reports are kept, and whose parcels arrive when a test says so.

    It may lose the answers of each batch once.
    """

    def __init__(self, inner: LocalCluster, *, loses_answers: bool = False) -> None:
        self.inner, self.loses_answers = inner, loses_answers
        self.tried: set[int] = set()
        self.reports: list[Report] = []
        self.parcels: dict[MoveKey, tuple[Future[Mapping[int, SortedRun]], Commit, Move]] = {}

    def prepare(self, rows: Any, plan: JoinPlan, placements: Sequence[ByHash]) -> LocalJob:
        return self.inner.prepare(rows, plan, placements)

    def run(self, job: LocalJob, orders: Orders) -> Future[Evaluated]:
        done = self.inner.run(job, orders)
        batch = orders.commit.batch + 1
        if self.loses_answers and batch not in self.tried:
            self.tried.add(batch)
            raise TryAgain("the answers are lost")
        self.reports += done.result().reports
        return done

    def ship(self, commit: Commit, move: Move) -> Future[Mapping[int, SortedRun]]:
        future: Future[Mapping[int, SortedRun]] = Future()
        self.parcels[move.key] = future, commit, move
        return future

    def deliver(self, key: MoveKey, *, with_files: bool) -> None:
        future, commit, move = self.parcels.pop(key)
        future.set_result(self.inner.ship(commit, move).result() if with_files else {})

    def sample(self, *given: Any) -> Any:
        return self.inner.sample(*given)

    def resize(self, workers: int) -> None:
        self.inner.resize(workers)

    def check(self) -> None:
        self.inner.check()

    def close(self) -> None:
        self.inner.close()


class Driven:
    """All workers of a query in this process, on a real checkpoint in `folder`."""

    def __init__(
        self,
        plan: JoinPlan,
        folder: Path,
        workers: int,
        hash_bits: int = 64,
        keep_late: bool = False,
        worker_orders: WorkerOrders | None = None,
        filled_at_once: int = 3,
        sink: Any = None,
        control: Callable[[Control], Control] = lambda control: control,
    ) -> None:
        self.folder, self.workers = folder, workers
        self.hash_bits, self.keep_late = hash_bits, keep_late
        self.worker_orders, self.filled_at_once = (
            worker_orders or WorkerOrders(),
            filled_at_once,
        )
        self.sink = sink or MemorySink()
        self._given, self._control = plan, control
        self._chores: Mapping[int, WorkerOrders] = {}
        self._results: list[pa.Table] = []
        self.engine = self._started(plan)

    def _started(self, plan: JoinPlan) -> Engine:
        identity = Identity(plan.query.text, "columns", plan.groups)
        first = commit_before_first(plan, self.workers)
        checkpoint = Checkpoint.open(self.folder / "checkpoint", identity, first)
        last = checkpoint.last_commit()
        resting = RecordDraft(*resumed(settled(last), plan, self.workers))
        draft = enact(resting, Resize(self.workers))
        plan = draft.plan
        late = ParquetSink(self.folder / "late") if self.keep_late else None
        published = checkpoint.is_published(last.batch)
        for sink, staged, parts in (
            (self.sink, last.staged, last.parts),
            (late, last.late_staged, last.late_parts),
        ):
            if sink is not None:
                seen = LastBatch(last.batch, staged, parts, published)
                sink.open(checkpoint.folder, checkpoint.id, seen)
        if isinstance(self.sink, MemorySink):
            self.sink.schema = plan.result_schema
        self.cluster = Watched(
            LocalCluster(
                plan.query,
                self.workers,
                self.folder,
                checkpoint.log,
                hashing=Hashing(self.hash_bits),
            )
        )
        told = Told(plan, lambda worker: self._chores.get(worker, self.worker_orders))
        control = Control(
            Observation(plan.query), Relocation(), Pacing(None), told, Still(self.workers)
        )
        engine = Engine(
            checkpoint=checkpoint,
            committed=last,
            draft=draft,
            cluster=self.cluster,
            sink=self.sink,
            late=late,
            bad=None,
            idleness=Idleness(len(plan.streams), None),
            control=self._control(control),
            journal=Journal(),
            costs=IndexProbes,
            driver_clock=DriverClock(lambda: 0),
        )
        engine.publish_last()
        return engine

    @property
    def checkpoint(self) -> Checkpoint:
        return self.engine.checkpoint

    @property
    def plan(self) -> JoinPlan:
        return self.engine.plan

    @property
    def commit(self) -> Commit:
        return self.engine.commit

    @commit.setter
    def commit(self, commit: Commit) -> None:
        self.engine.draft = replace(self.engine.draft, commit=commit)

    @property
    def reports(self) -> list[Report]:
        """Those of the last batches that were asked for."""
        return self.cluster.reports

    @property
    def results(self) -> list[pa.Table]:
        """By call of `batch`, in runs before this one too."""
        return self._results

    @property
    def _batches(self) -> dict[int, pa.Table]:
        """What has been shown, by batch, if it is kept here."""
        return dict(self.sink.batches) if isinstance(self.sink, MemorySink) else {}

    def all_results(self) -> pa.Table:
        return self.sink.table()

    def restart(self, workers: int | None = None) -> Driven:
        """Forget everything but the checkpoint and the results so far."""
        self.checkpoint.close()
        for tier in (MEMORY, DISK):
            for path in (self.folder / tier).rglob("*"):
                if path.is_file():
                    path.unlink()
        again = Driven(
            self.plan,
            self.folder,
            workers or self.workers,
            self.hash_bits,
            self.keep_late,
            self.worker_orders,
            sink=self.sink,
            control=self._control,
        )
        again._results = self._results
        return again

    def resize(self, workers: int) -> None:
        """Go on with another number of workers, while nothing moves."""
        self.workers = workers
        self.engine.cluster.resize(workers)
        self.command(Resize(workers))

    def stores(self, worker: int) -> dict[int, RunStore]:
        return self.cluster.inner.stores(self.commit, worker)

    def batch(
        self,
        rows: dict[int, pa.Table],
        *,
        at_end: bool = False,
        worker_orders: Mapping[int, WorkerOrders] | None = None,
        position: dict[str, Any] | None = None,
        is_stale: bool = False,
    ) -> pa.Table | None:
        """Evaluate one batch on all workers, commit it, and return what is shown of it.

        The job of a stale one was planned for an assignment of long ago.
        """
        self._carry_change_on()
        self._chores, self.cluster.reports = worker_orders or {}, []
        before = self._batches.keys()
        if is_stale:
            *_, prepare = self.engine.preparing(rows)
            BatchLoop(self.engine).on_files(replace(prepare(), placements=()), position or {})
        else:
            BatchLoop(self.engine).on_rows(rows, position or {})
        if at_end:
            BatchLoop(self.engine).close_moments(at_end=True)
        shown = [self._batches[number] for number in sorted(self._batches.keys() - before)]
        if not shown:
            return None
        self._results.append(pa.concat_tables(shown))
        return self._results[-1]

    def end(self) -> None:
        """Show all that is still to be shown when the input is used up."""
        BatchLoop(self.engine).end()

    def command(self, command: Command) -> None:
        """Have a command carried out between two batches."""
        self.engine.draft = enact(self.engine.draft, command)
        self.engine.control = self.engine.control.going_on_from(self.engine.draft)

    def change(self, text: str, way: Way, workers: Collection[int] = ()) -> bool:
        """Begin to change the plan, if it can be changed in this way."""
        if begun(self.commit, self.plan, text, way, workers).obstacle:
            return False
        self.command(BeginChange(text, way, tuple(workers)))
        return True

    def give_up_change(self) -> None:
        """Go on with the old plan alone."""
        self.command(GiveUpChange())

    def _carry_change_on(self) -> None:
        """End a change that is over, or have some more groups filled by the next batch."""
        change = self.commit.change
        if change is None or not isinstance(self.engine.control.migration, Still):
            return
        if is_over(self.commit, self.plan):
            self.command(EndChange())
        elif change.fills:
            self.command(FillUpTo(change.filled + self.filled_at_once))

    def move(self, space: int, groups: Ranges, sender: int, receiver: int) -> None:
        """Have groups taken out by the next batch."""
        ids = np.flatnonzero(marked(groups, self.plan.groups)).tolist()
        self.command(BeginMove(Move(sender, receiver, space, tuple(ids))))

    def arrive(self, move: Move, *, with_files: bool) -> None:
        """Let groups that were taken out arrive, in files or not; the next batch joins them."""
        if move.key in self.cluster.parcels:
            self.cluster.deliver(move.key, with_files=with_files)
