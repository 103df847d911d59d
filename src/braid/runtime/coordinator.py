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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.events import BatchDone, BatchRetried, Journal, WorkerShare, instant
from braid.join.outcome import next_commit
from braid.join.worker import Report
from braid.model.errors import BraidError
from braid.model.failpoints import reach
from braid.runtime.faults import explain_fault
from braid.runtime.session import quiet
from braid.runtime.split import slot_expression
from braid.runtime.task import REPORT, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from braid.join.plan import JoinPlan
    from braid.runtime.idleness import Idleness
    from braid.runtime.pinning import Anchor
    from braid.runtime.sinks import Sink
    from braid.state.checkpoint import Checkpoint
    from braid.state.commit import Commit

_TRIES = 4  # a batch is given up when it has failed as often as Spark gives up a task


@dataclass(slots=True)
class Coordinator:
    """Owns the truth (`commit`) of one running query."""

    plan: JoinPlan
    checkpoint: Checkpoint
    commit: Commit
    anchor: Anchor
    incarnation: str
    sink: Sink
    late: Sink | None
    idleness: Idleness
    journal: Journal
    steps: tuple[Callable[[_Batch], None], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Fix the order of the steps; the module's head says why it is this one."""
        self.steps = (self._evaluate, self._commit, self._publish, self._sweep)

    def on_batch(
        self, rows: DataFrame, number: int, position: dict[str, Any] | None = None
    ) -> None:
        """Take a batch of rows in the wire's form through all steps.

        Spark may bring a batch again that was committed before a crash.
        """
        batch = _Batch(rows, number, position, time.monotonic())
        if number <= self.commit.batch:
            return  # it was published before this run took its first batch
        if number != self.commit.batch + 1:
            raise BraidError(
                f"batch {number} came after batch {self.commit.batch}: the checkpoint's own "
                "part and Spark's part do not belong together",
                hint="restore the whole checkpoint folder from one copy",
            )
        for step in self.steps:
            step(batch)
        self.journal.add(self._done(batch))

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
        reach("results published", commit.batch)
        self.checkpoint.note_published(commit.batch)
        self.sink.clear()
        if self.late is not None:
            self.late.clear()

    def _evaluate(self, batch: _Batch) -> None:
        for tries_left in reversed(range(_TRIES)):
            batch.staged = self.sink.stage(batch.number)
            batch.late_staged = self.late.stage(batch.number) if self.late else None
            try:
                batch.reports = self._run_job(batch)
            except BraidError:
                raise
            except Exception as fault:
                reason = explain_fault(fault)
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
        """One Spark job: split, shuffle to the workers, join; only reports come back."""
        job = Job(
            plan=self.plan,
            commit=self.commit,
            checkpoint=self.checkpoint.folder,
            incarnation=self.incarnation,
            results=batch.staged,
            late=batch.late_staged,
        )
        quiet(batch.rows.sparkSession, self.commit.workers)
        slot = slot_expression(self.plan, self.commit.assignment, self.anchor.slot_keys)
        split = self.anchor.pin(batch.rows.selectExpr("*", f"{slot} AS slot"))
        answers = [json.loads(row[0]) for row in split.mapInArrow(job.task(), REPORT).collect()]
        for answer in answers:
            if "error" in answer:
                raise BraidError(answer["error"], hint=answer["hint"])
        return [Report.from_json(answer) for answer in answers]

    def _commit(self, batch: _Batch) -> None:
        idle = self.idleness.after([report.newest_us for report in batch.reports])
        commit = next_commit(
            self.plan, self.commit, batch.reports, idle=idle, position=batch.position
        )
        commit = replace(
            commit,
            staged=str(batch.staged),
            late_staged=str(batch.late_staged) if batch.late_staged else "",
        )
        self.checkpoint.write(commit)
        self.commit = commit
        reach("commit written", batch.number)

    def _publish(self, batch: _Batch) -> None:
        self.publish_last(batch.rows.sparkSession)
        reach("publishing noted", batch.number)

    def _sweep(self, batch: _Batch) -> None:
        self.checkpoint.sweep(self.commit)
        reach("log swept", batch.number)

    def _done(self, batch: _Batch) -> BatchDone:
        reports = batch.reports
        return BatchDone(
            batch=batch.number,
            input_rows=sum(report.input_rows for report in reports),
            late_rows=sum(report.late_rows for report in reports),
            null_key_rows=sum(report.null_key_rows for report in reports),
            null_time_rows=sum(report.null_time_rows for report in reports),
            output_rows=sum(report.output_rows for report in reports),
            elapsed_ms=round((time.monotonic() - batch.began) * 1000),
            watermark=instant(self.commit.watermark_us),
            workers=tuple(self._share(report) for report in reports),
        )

    def _share(self, report: Report) -> WorkerShare:
        return WorkerShare(
            worker=report.worker,
            groups=self.commit.assignment.count(report.worker),
            input_rows=report.input_rows,
            output_rows=report.output_rows,
            state_rows=report.state_rows,
            memory_bytes=report.memory_bytes,
            disk_bytes=report.disk_bytes,
            busy_ms=report.busy_ms,
            rebuilt_runs=report.rebuilt_runs,
            host=report.host,
        )


@dataclass(slots=True)
class _Batch:
    """A batch on its way through the steps."""

    rows: DataFrame
    number: int
    position: dict[str, Any] | None
    began: float
    staged: Path = Path()
    late_staged: Path | None = None
    reports: Sequence[Report] = ()
