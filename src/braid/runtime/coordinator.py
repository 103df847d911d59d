"""The coordinator: takes one batch after the other through its steps, exactly once.

The steps and their order are the whole of exactly-once:

1. **evaluate**: workers join the rows with their state, write the rows to the log and the
   results to a staging folder, and report. All of it can be done again: no file that a commit
   names is touched.
2. **commit**: one rename makes the batch's state and results the truth. Before it the batch has
   not happened; after it the batch is never evaluated again.
3. **publish**: the sink shows the committed results. After a crash it is simply done again.
4. **sweep**: what no commit needs is removed.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.events import BatchRetried, ClockPutBack, Event, Journal, Migrated, instant
from braid.join.closing import closing_us, is_due
from braid.join.outcome import next_commit
from braid.join.report import Report
from braid.model.errors import BraidError
from braid.model.failpoints import reach
from braid.runtime.account import batch_done, newly_displaced
from braid.runtime.bad_rows import keep
from braid.runtime.faults import explain_fault, lost_spark, unlogged
from braid.runtime.orders import Orders
from braid.runtime.relocation import begun
from braid.runtime.session import described, quiet
from braid.runtime.split import no_rows, rehashed, sent_schema, slot_expression
from braid.runtime.task import Job
from braid.runtime.union import nothing, united

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from braid.adapt.proposal import Relocate
    from braid.join.chores import Chores
    from braid.join.plan import JoinPlan
    from braid.runtime.adaptation import Adaptation
    from braid.runtime.behind import Ask
    from braid.runtime.clock import MaxAhead
    from braid.runtime.idleness import Idleness
    from braid.runtime.migration import Migration
    from braid.runtime.observation import Observation
    from braid.runtime.pacing import Pacing
    from braid.runtime.pinning import Anchor
    from braid.runtime.relocation import Relocation
    from braid.runtime.replanning import Replanning
    from braid.runtime.sinks import Sink
    from braid.runtime.split import Splits
    from braid.runtime.union import Gathered
    from braid.state.checkpoint import Checkpoint
    from braid.state.commit import Commit, Part

    Read = Callable[[], Gathered]
    """Has the rows of a batch, again and again if need be."""

_TRIES = 4  # a batch is given up when it has failed as often as Spark gives up a task


@dataclass(slots=True)
class Coordinator:
    """Owns the truth (`commit`) of one running query."""

    checkpoint: Checkpoint
    commit: Commit
    anchor: Anchor
    incarnation: str
    sink: Sink
    late: Sink | None
    bad: Sink | None
    idleness: Idleness
    adaptation: Adaptation
    relocation: Relocation
    pacing: Pacing
    migration: Migration
    observation: Observation
    replanning: Replanning | None
    splits: Splits
    journal: Journal
    name: str  # in Spark's pages
    max_ahead: MaxAhead | None = None
    clock: Callable[[], float] = time.monotonic
    displaced: set[str] = field(default_factory=set, init=False)  # hosts without memory for us
    steps: tuple[Callable[[_Batch], None], ...] = field(init=False)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        """Fix the order of the steps; the module's head says why it is this one."""
        self.steps = (self._evaluate, self._commit, self._publish, self._sweep)
        self._began = self.clock()

    @property
    def plan(self) -> JoinPlan:
        """By which batches are evaluated now."""
        return self.migration.plan

    def ask_for_unread(self, ask: Ask) -> None:
        """Have whoever brings the rows tell how many there are yet, if someone cares."""
        if self.replanning is not None:
            self.replanning.behind.ask = ask

    def preparing(self, read: Read, spark: SparkSession) -> list[Callable[[], Prepared]]:
        """What plans the job of the batch after the next one, while that runs.

        What it will start from is told now, as nothing may change meanwhile. If all states of a
        new plan are made before it, what plans that comes first.
        """
        expected = [(self.commit, self.plan)]
        if not self.relocation.unbegun:  # or else those belong to the plan as it is
            expected = self.migration.after_next(self.commit, self.observation)
        *before, last = expected
        moves = self.relocation.unbegun
        filling = (partial(self._prepare, spark, nothing, *each, moves) for each in before)
        return [*filling, partial(self._prepare, spark, read, *last, moves)]

    def _prepare_next(self, spark: SparkSession, read: Read) -> Prepared:
        """Plan the job of the next batch; moves that have been computed begin with it."""
        return self._prepare(spark, read, self.commit, self.plan, self.relocation.unbegun)

    def _prepare_again(self, job: Prepared) -> Prepared:
        """Plan the job of a batch that has begun anew.

        Its moves are on the record already, and no other may begin in mid-batch: the workers
        get this record with their orders, so rows must go where this record says.
        """
        return self._prepare(job.spark, job.read, self.commit, self.plan, ())

    def _prepare(
        self,
        spark: SparkSession,
        read: Read,
        commit: Commit,
        plan: JoinPlan,
        moves: tuple[Relocate, ...],
    ) -> Prepared:
        """Plan the job of a batch with some rows, from a record on which some moves begin.

        One Spark job: a split, a shuffle and a join per round; only reports come back. It may
        be planned beside a batch after which the plan changes: it goes by what it was given.
        """
        assignments = begun(plan, commit, moves).assignments
        rows = read()
        quiet(spark, self.commit.workers)
        orders = self.checkpoint.orders / f"{uuid.uuid4().hex}.json"
        job = Job(plan, self.checkpoint.folder, self.incarnation, orders)
        sent: list[DataFrame] = []
        for number in range(len(plan.rounds.rounds)):
            parts = [rehashed(plan, number, each) for each in sent]
            parts += self.splits.entering(plan, rows, number)
            here = united(parts or [no_rows(spark, plan, number)])
            slot = slot_expression(plan, number, assignments, self.anchor.slot_keys)
            shuffled = self.anchor.pin(here.selectExpr("*", f"{slot} AS slot"))
            sent = [shuffled.mapInArrow(job.task(number), sent_schema(plan, number))]
        (answers,) = sent
        answers._jdf.queryExecution().executedPlan()  # Spark keeps it for the time of need
        return Prepared(read, spark, answers, orders, plan, assignments, moves)

    def _without_rows(self, spark: SparkSession) -> Prepared:
        return self._prepare_next(spark, nothing)

    def on_source_batch(self, rows: DataFrame, number: int) -> None:
        """Take a batch that Spark brings through all steps.

        Spark may bring the last one again, if it was committed before a crash; its rows are the
        same, for the checkpoint knows its offsets.
        """
        last = self.commit.source_batch
        if not last <= number <= last + 1:
            raise BraidError(
                f"batch {number} came after batch {last}: the checkpoint's own part and "
                "Spark's part do not belong together",
                hint="restore the whole checkpoint folder from one copy",
            )
        if number > last:
            self._make_room(rows.sparkSession)
            self.fill_at_once(rows.sparkSession)
            read = partial(self.splits.union.gathered, rows)
            self._take(self._prepare_next(rows.sparkSession, read), source_batch=number)
        # Of one that came again too: the crash may have been before what it closed was shown.
        self.close_moments(rows.sparkSession)

    def on_files(self, job: Prepared, position: dict[str, Any]) -> None:
        """Take a batch of rows from files through all steps."""
        self._make_room(job.spark)
        self.fill_at_once(job.spark)
        self._take(job, position=position)

    def _make_room(self, spark: SparkSession) -> None:
        """Let rows that wait go first, if there are too many of them for others to come."""
        while self.pacing.is_full(self.commit):
            self.relocation.wait()
            self._take(self._without_rows(spark))

    def fill_at_once(self, spark: SparkSession, job: Prepared | None = None) -> None:
        """A batch without rows that makes all states of a new plan, if they are so few.

        Its job may have been planned before.
        """
        if self.migration.fills_at_once(self.commit):
            self._take(job or self._without_rows(spark))

    def clean_up(self, spark: SparkSession) -> None:
        """Batches without rows, until no result is owed."""
        while self.adaptation.owing_bytes:
            self.adaptation.ask_for_cleanup()
            self._take(self._without_rows(spark))

    @property
    def can_go_on(self) -> bool:
        """Whether rows wait for a batch alone: their groups have arrived, or never moved."""
        rests = not self.commit.moves
        return self.relocation.has_arrived or (rests and any(self.commit.waiting))

    def take_waiting(self, spark: SparkSession) -> None:
        """A batch without rows, if rows that wait can go on in it."""
        if self.can_go_on:
            self._take(self._without_rows(spark))

    def settle_moves(self, spark: SparkSession) -> None:
        """Batches without rows, until no group moves and no row waits."""
        while self.relocation.is_under_way or any(self.commit.waiting):
            self.relocation.wait()
            self._take(self._without_rows(spark))

    def end(self, spark: SparkSession) -> None:
        """Show all that is still to be shown when the input is used up."""
        self.adaptation.is_ending = True
        self.relocation.give_up_unbegun()
        self.settle_moves(spark)
        if self.adaptation.settings.cleanup != "never":
            self.clean_up(spark)
        self.close_moments(spark, at_end=True)

    def close_moments(self, spark: SparkSession, *, at_end: bool = False) -> None:
        """A batch without rows, if it has something to show that waited for the watermark."""
        if is_due(self.plan, self.commit, at_end=at_end):
            self._take(self._without_rows(spark), at_end=at_end)

    def _take(
        self,
        job: Prepared,
        *,
        source_batch: int | None = None,
        position: dict[str, Any] | None = None,
        at_end: bool = False,
    ) -> None:
        """Take a prepared batch through all steps."""
        self.commit, events = self.relocation.before(self.commit, job.moves)
        for event in events:
            self.journal.add(event)
        last = self.commit
        clock_us = self._clock_us(last)
        batch = _Batch(
            job=job,
            number=last.batch + 1,
            chores=self.adaptation.chores(
                last, self.pacing, changes=self.migration.is_wanted(last)
            ),
            closing_us=closing_us(self.plan, last, at_end=at_end),
            clock_us=clock_us,
            ahead_after_us=(
                None if self.max_ahead is None else self.max_ahead.after_us(clock_us)
            ),
            source_batch=last.source_batch if source_batch is None else source_batch,
            position=last.position if position is None else position,
            began=self.clock(),
        )
        with described(job.spark, f"{self.name}: batch {batch.number}"):
            for step in self.steps:
                step(batch)
        self.observation.after(self.plan, last, self.commit, batch.reports)
        if self.replanning is not None:
            self.replanning.learn(self.plan, last, self.commit, batch.reports)
        elapsed_ms = round((self.clock() - batch.began) * 1000)
        known = self.observation.statistics
        self.journal.add(batch_done(self.plan, self.commit, batch.reports, known, elapsed_ms))
        for displaced in newly_displaced(batch.number, batch.reports, self.displaced):
            self.journal.add(displaced)
        self._adapt(batch, elapsed_ms)

    def _clock_us(self, last: Commit) -> int:
        """The driver's clock for the batch after `last`.

        It never goes back, so that no row is refused which an earlier batch would take; but it
        was wrong then if it lies too far ahead of what it says now.
        """
        now_us, before_us = time.time_ns() // 1000, last.clock_us
        if before_us is None:
            return now_us
        if self.max_ahead is not None and self.max_ahead.is_wrong(before_us, now_us):
            told = instant(before_us), instant(now_us)
            self.journal.add(ClockPutBack(last.batch + 1, *told))
            return now_us
        return max(now_us, before_us)

    def _adapt(self, batch: _Batch, elapsed_ms: int) -> None:
        """Carry on with what moves, and let the strategy decide what else is to be done."""
        events: list[Event] = [*self.relocation.after(self.commit)]
        events += self.pacing.after(self.commit, batch.reports, elapsed_ms)
        under_way = self.relocation.orders
        now_ms = round((self.clock() - self._began) * 1000)
        events += self.adaptation.after(self.commit, batch.reports, now_ms, under_way)
        wanted = self.adaptation.moves[len(under_way) :]
        if not self.migration.is_wanted(self.commit):
            events += self.relocation.begin(self.commit.batch, wanted)
        if self.replanning is not None and not self.adaptation.is_ending:
            rows = sum(report.input_rows for report in batch.reports)
            read = batch.job.read
            batch_of = self.commit, read, rows, elapsed_ms
            events += self.replanning.after(self.migration, *batch_of)
        for event in events:
            self.journal.add(event)
        self._change_plan(elapsed_ms)

    def _change_plan(self, elapsed_ms: int) -> None:
        """Carry on with a change of plan, or begin one."""
        before = self.plan
        for each in self.migration.after(self.commit, elapsed_ms, self.observation):
            if isinstance(each, Migrated):
                self.journal.add(each)
            else:
                self.commit = each
        if self.plan is not before:
            self.relocation.give_up_unbegun()
            self.relocation.plan = self.plan
            self.adaptation.replan(self.plan, self.commit)

    def publish_last(self, spark: SparkSession) -> None:
        """Show the last committed batch's results, unless that has been done.

        They are cleared away only when the checkpoint has the note that they were shown, so
        results that are neither noted nor to be found are an error, not a silent gap.
        """
        commit = self.commit
        if self.checkpoint.is_published(commit.batch):
            return
        self.sink.publish(spark, commit.batch, Path(commit.staged), commit.parts)
        if self.late is not None and commit.late_staged:
            self.late.publish(spark, commit.batch, Path(commit.late_staged), commit.late_parts)
        if self.bad is not None and commit.bad_staged:
            self.bad.publish(spark, commit.batch, Path(commit.bad_staged), commit.bad_parts)
        reach("results published", commit.batch)
        self.checkpoint.note_published(commit.batch)
        for place in (self.sink, self.late, self.bad):
            if place is not None:
                place.clear()

    def _evaluate(self, batch: _Batch) -> None:
        for tries_left in reversed(range(_TRIES)):
            batch.staged = self.sink.stage(batch.number)
            batch.late_staged = self.late.stage(batch.number) if self.late else None
            try:
                if tries_left < _TRIES - 1:
                    # Run again, the same job would take up what earlier rounds have shuffled,
                    # and with it reports of files in the place that was staged for them then.
                    batch.job = self._prepare_again(batch.job)
                with unlogged():
                    batch.reports = self._run_job(batch)
                    self._keep_bad_rows(batch)
            except BraidError:
                raise
            except Exception as fault:
                reason = lost_spark(batch.job.spark) or explain_fault(
                    fault, keeps_bad=self.splits.union.keeps_bad
                )
                if isinstance(reason, BraidError):
                    raise reason from None
                if not tries_left:
                    raise BraidError(
                        f"batch {batch.number} failed {_TRIES} times: {reason}",
                        hint="nothing was lost: start again once the cause is gone",
                    ) from fault
                self.journal.add(BatchRetried(batch.number, reason))
            else:
                break
        reach("batch evaluated", batch.number)

    def _run_job(self, batch: _Batch) -> list[Report]:
        """Give the orders, and have the prepared job carried out."""
        job = batch.job
        if job.plan != self.plan or job.assignments != self.commit.assignments:
            batch.job = self._prepare_again(job)
        path = batch.job.orders
        Orders(
            commit=self.commit,
            chores=batch.chores,
            closing_us=batch.closing_us,
            results=batch.staged,
            late=batch.late_staged,
            ahead_after_us=batch.ahead_after_us,
        ).write(path)
        answers = batch.job.answers.collect()
        path.unlink()
        reports = [json.loads(row[0]) for row in answers]
        for report in reports:
            if "error" in report:
                raise BraidError(report["error"], hint=report["hint"])
        return [Report.from_json(report) for report in reports]

    def _keep_bad_rows(self, batch: _Batch) -> None:
        """Stage the rows that no expression could be computed for, in the rare case of some."""
        batch.bad_staged, batch.bad_parts = None, ()
        if self.bad is not None and any(report.bad_rows for report in batch.reports):
            batch.bad_staged = self.bad.stage(batch.number)
            aliases = [stream.alias for stream in self.plan.query.streams]
            batch.bad_parts = keep(batch.job.read(), aliases, batch.bad_staged)

    def _commit(self, batch: _Batch) -> None:
        idle = self.idleness.after([report.newest_us for report in batch.reports])
        commit = next_commit(
            self.plan, self.commit, batch.reports, closing_us=batch.closing_us, idle=idle
        )
        commit = replace(
            commit,
            staged=str(batch.staged),
            late_staged=str(batch.late_staged) if batch.late_staged else "",
            bad_staged=str(batch.bad_staged) if batch.bad_staged else "",
            bad_parts=batch.bad_parts,
            position=batch.position,
            source_batch=batch.source_batch,
            clock_us=batch.clock_us,
        )
        if batch.source_batch > self.commit.source_batch:
            offsets = self.checkpoint.offsets_checksum(batch.source_batch)
            commit = replace(commit, source_checksum=offsets or "")
        commit = self.adaptation.count(commit, batch.reports)
        self.checkpoint.write(commit)
        self.commit = commit
        reach("commit written", batch.number)

    def _publish(self, batch: _Batch) -> None:
        self.publish_last(batch.job.spark)
        reach("publishing noted", batch.number)

    def _sweep(self, batch: _Batch) -> None:
        self.checkpoint.sweep(self.commit)
        reach("log swept", batch.number)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch's job, for a plan and assignments; it runs once its orders are written.

    It is ready for some `moves` to begin with it.
    """

    read: Read
    spark: SparkSession
    answers: DataFrame
    orders: Path
    plan: JoinPlan
    assignments: tuple[tuple[int, ...], ...]
    moves: tuple[Relocate, ...]


@dataclass(slots=True)
class _Batch:
    """A batch on its way through the steps."""

    job: Prepared
    number: int
    chores: tuple[Chores, ...]
    closing_us: int | None
    clock_us: int
    ahead_after_us: int | None
    source_batch: int
    position: dict[str, Any] | None
    began: float
    staged: Path = Path()
    late_staged: Path | None = None
    bad_staged: Path | None = None
    bad_parts: tuple[Part, ...] = ()
    reports: Sequence[Report] = ()
