"""The engine: takes one batch after the other through its steps, exactly once.

The steps and their order are the whole of exactly-once:

1. **evaluate**: workers join the rows with their state, write the rows to the log and the
   results to a staging folder, and report. All of it can be done again: no file that a commit
   names is touched.
2. **commit**: one rename makes the batch's state and results the truth. Before it the batch has
   not happened; after it the batch is never evaluated again.
3. **publish**: the sink shows the committed results. After a crash it is simply done again.
4. **sweep**: what no commit needs is removed.

The last record is `committed`. What the next batch starts from is the `draft`: that record with
the commands that deciders have given since.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from braid.control.decider import BatchSeen
from braid.control.migration import AUTO
from braid.engine.account import batch_done, newly_displaced
from braid.engine.beside import Beside
from braid.engine.cluster import Evaluated, TryAgain
from braid.events import BatchRetried, ClockPutBack, Journal
from braid.model.errors import BraidError
from braid.model.failpoints import reach
from braid.record.closing import finalize_up_to_us
from braid.record.enact import (
    BeginChange,
    BeginMove,
    EndChange,
    Reactivate,
    RecordDraft,
    enact,
    enact_all,
)
from braid.record.next_commit import next_commit
from braid.record.orders import Orders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from braid.control.control import Control
    from braid.control.decider import Decided
    from braid.control.migration import PlanChangeRequest
    from braid.engine.clock import DriverClock
    from braid.engine.cluster import BatchInput, Cluster, Job
    from braid.engine.idleness import Idleness
    from braid.engine.sink import Sink
    from braid.optimize.cost_model import IndexProbes
    from braid.plan.join_plan import JoinPlan
    from braid.plan.placement import ByHash
    from braid.record.checkpoint import Checkpoint
    from braid.record.commit import Commit
    from braid.record.move import Move, MoveKey
    from braid.record.report import Report

    AskUnread = Callable[[int], float | None]
    """From the rows that were read so far, about how many were not; None if nobody can tell."""

_NOTHING = Evaluated(())
_TRIES = 4  # a batch is given up when it has failed as often as Spark gives up a task
_FAILPOINTS = {
    Reactivate: "groups reactivated",
    BeginChange: "change begun",
    EndChange: "change ended",
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch's job, for a plan and placements; it is ready for some `moves` to begin."""

    rows: BatchInput | None
    job: Job
    plan: JoinPlan
    placements: tuple[ByHash, ...]
    moves: tuple[MoveKey, ...]


@dataclass(slots=True)
class _Batch:
    """A batch on its way through the steps."""

    job: Prepared
    number: int
    finalize_up_to_us: int | None
    clock_us: int
    ahead_after_us: int | None
    source_batch: int
    position: dict[str, Any] | None
    began: float
    orders: Orders | None = None
    done: Evaluated = _NOTHING

    @property
    def reports(self) -> Sequence[Report]:
        """The workers' accounts, once it has been evaluated."""
        return self.done.reports


@dataclass(slots=True)
class Engine:
    """Owns the truth of one running query: the record of the last batch, and the draft.

    `costs` are measured when they are needed, by whoever asks for a change of plan.
    """

    checkpoint: Checkpoint
    committed: Commit
    draft: RecordDraft
    cluster: Cluster
    sink: Sink
    late: Sink | None
    bad: Sink | None
    idleness: Idleness
    control: Control
    journal: Journal
    costs: Callable[[], IndexProbes]
    driver_clock: DriverClock
    clock: Callable[[], float] = time.monotonic
    ask_unread: AskUnread = lambda rows: None
    steps: tuple[Callable[[_Batch], None], ...] = field(init=False)
    beside: Beside = field(init=False)
    displaced: set[str] = field(default_factory=set, init=False)  # hosts without memory for us
    _began: float = field(init=False)
    _decided_ms: int = field(default=0, init=False)
    is_ending: bool = field(default=False, init=False)
    _read_rows: int = field(default=0, init=False)
    _asked: SimpleQueue[Callable[[Control], Control]] = field(
        default_factory=SimpleQueue, init=False
    )

    def __post_init__(self) -> None:
        """Fix the order of the steps; the module's head says why it is this one."""
        self.steps = (self._evaluate, self._commit, self._publish, self._sweep)
        self.beside = Beside(self.cluster)
        self._began = self.clock()

    @property
    def plan(self) -> JoinPlan:
        """By which the next batch is evaluated."""
        return self.draft.plan

    @property
    def commit(self) -> Commit:
        """The record that the next batch starts from."""
        return self.draft.commit

    # What users ask for, from whichever thread; it counts from the next batch on.

    def ask_for_cleanup(self) -> None:
        """Have all that is owed made in the next batches."""
        self._asked.put(lambda control: control.asked_to_clean_up())

    def ask_for_plan(self, request: PlanChangeRequest) -> None:
        """Have the plan changed; what is wrong with a request is said to who asks."""
        checked = self.control.migration.checked(self.plan.query, request)
        costs = self.costs() if checked.way == AUTO else None
        self._asked.put(lambda control: control.asked_to_change(checked, costs))

    def hear(self) -> None:
        """Take in what users have asked for."""
        while True:
            try:
                asked = self._asked.get_nowait()
            except Empty:
                break
            self.control = asked(self.control)
        self.control = self.control.going_on_from(self.draft)

    # Jobs, which may be planned ahead.

    def preparing(self, rows: BatchInput) -> list[Callable[[], Prepared]]:
        """Callables that plan the batch after next, while the next one runs.

        Their drafts are told now, as nothing may change meanwhile. If all states of a new plan
        are made before that batch, the job of that comes first.
        """
        self.hear()
        moves = self.control.relocation.computed
        *before, last = self.control.after_next(self.draft)
        filling = (partial(self._prepare, None, each, moves) for each in before)
        return [*filling, partial(self._prepare, rows, last, moves)]

    def prepare_next(self, rows: BatchInput | None) -> Prepared:
        """Plan the job of the next batch; moves that have been computed begin with it."""
        return self._prepare(rows, self.draft, self.control.relocation.computed)

    def _prepare(
        self, rows: BatchInput | None, draft: RecordDraft, moves: tuple[Move, ...]
    ) -> Prepared:
        """Plan the job of a batch with some rows, from a draft in which some moves begin.

        It may be planned beside a batch after which the plan changes: it goes by what it was
        given.
        """
        begun = enact_all(draft, map(BeginMove, moves))
        placements = begun.commit.placements
        job = self.cluster.prepare(rows, draft.plan, placements)
        keys = tuple(move.key for move in moves)
        return Prepared(rows, job, draft.plan, placements, keys)

    # A batch, step by step.

    def take(
        self,
        job: Prepared,
        *,
        source_batch: int | None = None,
        position: dict[str, Any] | None = None,
        at_end: bool = False,
    ) -> None:
        """Take a prepared batch through all steps, and let the deciders learn from it."""
        self.hear()
        decided = self.control.before_batch(self.draft, job.moves, self.beside.arrivals())
        self._carry_out(decided)
        last = self.commit
        clock_us, put_back = self.driver_clock.read(last.clock_us)
        if put_back is not None:
            self.journal.add(ClockPutBack(last.batch + 1, *put_back))
        batch = _Batch(
            job=job,
            number=last.batch + 1,
            finalize_up_to_us=finalize_up_to_us(self.plan, last, at_end=at_end),
            clock_us=clock_us,
            ahead_after_us=self.driver_clock.ahead_after_us(clock_us),
            source_batch=last.source_batch if source_batch is None else source_batch,
            position=last.position if position is None else position,
            began=self.clock(),
        )
        for step in self.steps:
            step(batch)
        self._decide(self._seen(batch, last), batch.job.rows)

    def _evaluate(self, batch: _Batch) -> None:
        for tries_left in reversed(range(_TRIES)):
            try:
                if tries_left < _TRIES - 1:
                    # Run again, the same job would take up what earlier rounds have shuffled,
                    # and with it reports of files in the place that was staged for them then.
                    batch.job = self._prepare(batch.job.rows, self.draft, ())
                batch.done = self._run_job(batch)
            except TryAgain as fault:
                if not tries_left:
                    raise BraidError(
                        f"batch {batch.number} failed {_TRIES} times: {fault}",
                        hint="nothing was lost: start again once the cause is gone",
                    ) from fault
                self.journal.add(BatchRetried(batch.number, str(fault)))
            else:
                break
        reach("batch evaluated", batch.number)

    def _run_job(self, batch: _Batch) -> Evaluated:
        """Give the orders, and have the prepared job carried out.

        If it is out of date, it is prepared anew. The moves of a batch are on the record by
        then, and no other may begin: the workers get this record with their orders, so rows
        must go where this record says.
        """
        job = batch.job
        if job.plan != self.plan or job.placements != self.commit.placements:
            batch.job = job = self._prepare(job.rows, self.draft, ())
        batch.orders = Orders(
            commit=self.commit,
            worker_orders=self.control.orders(self.commit),
            finalize_up_to_us=batch.finalize_up_to_us,
            results=self.sink.stage(batch.number),
            late=self.late.stage(batch.number) if self.late else None,
            bad=self.bad.stage(batch.number) if self.bad else None,
            ahead_after_us=batch.ahead_after_us,
        )
        return self.cluster.run(job.job, batch.orders).result()

    def _commit(self, batch: _Batch) -> None:
        orders, bad_parts = batch.orders, batch.done.bad_parts
        assert orders is not None, "a batch is evaluated before it is committed"
        idle = self.idleness.after([report.newest_us for report in batch.reports])
        commit = next_commit(
            self.plan,
            self.commit,
            batch.reports,
            finalize_up_to_us=batch.finalize_up_to_us,
            idle=idle,
        )
        commit = replace(
            commit,
            staged=str(orders.results),
            late_staged=str(orders.late) if orders.late else "",
            bad_staged=str(orders.bad) if bad_parts else "",
            bad_parts=bad_parts,
            position=batch.position,
            source_batch=batch.source_batch,
            clock_us=batch.clock_us,
        )
        if batch.source_batch > self.commit.source_batch:
            offsets = self.checkpoint.offsets_checksum(batch.source_batch)
            commit = replace(commit, source_checksum=offsets or "")
        self.control = self.control.counted(batch.number, batch.reports)
        if self.control.adaptation.is_active:
            commit = replace(commit, tallies=self.control.adaptation.tallies())
        self.checkpoint.write(commit)
        self.committed, self.draft = commit, replace(self.draft, commit=commit)
        reach("commit written", batch.number)

    def _publish(self, batch: _Batch) -> None:
        self.publish_last()
        reach("publishing noted", batch.number)

    def publish_last(self) -> None:
        """Show the last committed batch's results, unless that has been done.

        They are cleared away only when the checkpoint has the note that they were shown, so
        results that are neither noted nor to be found are an error, not a silent gap.
        """
        commit = self.committed
        if self.checkpoint.is_published(commit.batch):
            return
        self.sink.publish(commit.batch, Path(commit.staged), commit.parts)
        if self.late is not None and commit.late_staged:
            self.late.publish(commit.batch, Path(commit.late_staged), commit.late_parts)
        if self.bad is not None and commit.bad_staged:
            self.bad.publish(commit.batch, Path(commit.bad_staged), commit.bad_parts)
        reach("results published", commit.batch)
        self.checkpoint.note_published(commit.batch)
        for place in (self.sink, self.late, self.bad):
            if place is not None:
                place.clear()

    def _sweep(self, batch: _Batch) -> None:
        self.checkpoint.sweep(self.committed)
        reach("log swept", batch.number)

    # After a batch.

    def _seen(self, batch: _Batch, before: Commit) -> BatchSeen:
        """What the deciders are shown of a batch."""
        now = self.clock()
        self._read_rows += sum(report.input_rows for report in batch.reports)
        is_asked = self.control.replanning is not None
        return BatchSeen(
            before=before,
            after=self.committed,
            plan=self.plan,
            reports=batch.reports,
            elapsed_ms=round((now - batch.began) * 1000),
            now_ms=round((now - self._began) * 1000),
            unread_rows=self.ask_unread(self._read_rows) if is_asked else None,
            sample=self.beside.sample_found(),
            is_sampling=self.beside.is_sampling,
            is_ending=self.is_ending,
        )

    def _decide(self, seen: BatchSeen, rows: BatchInput | None) -> None:
        """Tell of a batch, and have the deciders say what the next one starts from."""
        began = self.clock()
        self.control = self.control.learned(seen)
        known = self.control.observation.statistics
        counts = seen.elapsed_ms, self._decided_ms
        self.journal.add(batch_done(seen.plan, seen.after, seen.reports, known, *counts))
        for displaced in newly_displaced(seen.batch, seen.reports, self.displaced):
            self.journal.add(displaced)
        self.beside.ship(self.committed, self.control.relocation.taken_out(seen))
        self._carry_out(self.control.observe(seen))
        asked = self.clock()
        looked = self.control.replan(seen, self.draft)
        self._carry_out(looked.decided)
        self.control = self.control.searched(self.clock() - asked, looked.searches)
        if looked.pairs and rows is not None:
            self.beside.sample(rows, seen.input_rows, looked.pairs)
        self.hear()
        self._carry_out(self.control.change_plan(self.draft, seen.elapsed_ms))
        self.control = self.control.going_on_from(self.draft)
        self._decided_ms = round((self.clock() - began) * 1000)

    def _carry_out(self, decided: Decided[Control]) -> None:
        """Make a draft of what was decided, and tell of it."""
        self.control = decided.next
        for event in decided.events:
            self.journal.add(event)
        for command in decided.commands:
            self.draft = enact(self.draft, command)
            if type(command) in _FAILPOINTS:
                reach(_FAILPOINTS[type(command)], self.commit.batch + 1)

    def begin_to_end(self) -> None:
        """Begin no move any more: the input is used up."""
        self.is_ending = True
        self.control = self.control.ending()
