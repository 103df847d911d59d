"""A cluster of Spark's executors: one job a batch, with a split, shuffle and join per round.

Only reports come back to the driver. The job is planned before anything is known of the batches
ahead of it: what workers are told, they find in a file.
"""

from __future__ import annotations

import json
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from braid.engine.cluster import Evaluated, TryAgain
from braid.model.errors import BraidError
from braid.record.report import Report
from braid.spark.bad_rows import keep
from braid.spark.faults import explain_fault, lost_spark, unlogged
from braid.spark.pinning import drop_anchor
from braid.spark.sampling import sampled
from braid.spark.session import described, quiet
from braid.spark.shipping import Shipment
from braid.spark.split import no_rows, rehashed, sent_schema, slot_expression
from braid.spark.task import Task, orders_of
from braid.spark.union import united
from braid.worker.memory_tier import release_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from braid.engine.cluster import Pair
    from braid.plan.join_plan import JoinPlan
    from braid.plan.placement import ByHash
    from braid.record.commit import Commit, ResultFile
    from braid.record.move import Move
    from braid.record.orders import Orders
    from braid.spark.pinning import Anchor
    from braid.spark.split import Splits
    from braid.spark.union import Gathered
    from braid.state.runs import SortedRun


@dataclass(frozen=True, slots=True)
class SparkRows:
    """The rows of a batch: frames of a session, which are made again each time."""

    spark: SparkSession
    read: Callable[[], Gathered]


@dataclass(frozen=True, slots=True)
class SparkJob:
    """A batch's job, planned by Spark; it runs once its orders are written."""

    spark: SparkSession
    rows: SparkRows | None
    plan: JoinPlan
    answers: DataFrame
    orders: Path


@dataclass(slots=True)
class SparkCluster:
    """Workers that are pinned to executors; `name` is the run's in Spark's pages.

    Orders are written into a folder that all machines share.
    """

    spark: SparkSession
    anchor: Anchor
    checkpoint: Path
    orders: Path
    incarnation: str
    splits: Splits
    name: str
    memory_bytes: int | None = None
    _porter: ThreadPoolExecutor = field(init=False)
    _sampler: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        """Have one thread for moves and another for samples."""
        self._porter = ThreadPoolExecutor(1, "braid-moves")
        self._sampler = ThreadPoolExecutor(1, "braid-samples")

    def prepare(
        self, rows: SparkRows | None, plan: JoinPlan, placements: Sequence[ByHash]
    ) -> SparkJob:
        """Plan a batch's job."""
        with self._explained(rows):
            spark = self.spark if rows is None else rows.spark
            gathered = {} if rows is None else rows.read()
            quiet(spark, len(self.anchor.slot_keys))
            orders = self.orders / uuid.uuid4().hex
            task = Task(plan, self.checkpoint, self.incarnation, orders)
            sent: list[DataFrame] = []
            for number in range(len(plan.rounds.rounds)):
                parts = [rehashed(plan, number, each) for each in sent]
                parts += self.splits.entering(plan, gathered, number)
                here = united(parts or [no_rows(spark, plan, number)])
                slot = slot_expression(plan, number, placements, self.anchor.slot_keys)
                shuffled = self.anchor.pin(here.selectExpr("*", f"{slot} AS slot"))
                sent = [shuffled.mapInArrow(task.of_round(number), sent_schema(plan, number))]
            (answers,) = sent
            answers._jdf.queryExecution().executedPlan()  # Spark keeps it for the time of need
            return SparkJob(spark, rows, plan, answers, orders)

    def run(self, job: SparkJob, orders: Orders) -> Future[Evaluated]:
        """Carry a job out in this thread: Spark ends the jobs of a thread that is to stop."""
        done = Future[Evaluated]()
        try:
            with (
                self._explained(job.rows),
                described(job.spark, f"{self.name}: batch {orders.commit.batch + 1}"),
            ):
                done.set_result(self._evaluated(job, orders))
        except Exception as fault:
            done.set_exception(fault)
        return done

    def _evaluated(self, job: SparkJob, orders: Orders) -> Evaluated:
        told = dict(enumerate(orders.of_workers(job.plan)))
        for worker, each in told.items():
            each.write(orders_of(job.orders, worker))
        answers = job.answers.collect()
        for worker in told:
            orders_of(job.orders, worker).unlink()
        texts = [json.loads(row[0]) for row in answers]
        for text in texts:
            if "error" in text:
                raise BraidError(text["error"], hint=text["hint"])
        reports = [Report.from_json(text) for text in texts]
        return Evaluated(reports, self._bad_parts(job, orders, reports))

    def _bad_parts(
        self, job: SparkJob, orders: Orders, reports: Sequence[Report]
    ) -> tuple[ResultFile, ...]:
        """Keep the rows that no expression could be computed for, in the rare case of some."""
        if orders.bad is None or job.rows is None or not any(r.bad_rows for r in reports):
            return ()
        aliases = [stream.alias for stream in job.plan.query.streams]
        return keep(job.rows.read(), aliases, orders.bad)

    def ship(self, commit: Commit, move: Move) -> Future[Mapping[int, SortedRun]]:
        """Take groups to their receiver, in a job beside those of batches."""
        return self._porter.submit(self._shipped, commit, move)

    def _shipped(self, commit: Commit, move: Move) -> Mapping[int, SortedRun]:
        place = self.checkpoint, self.incarnation, self.memory_bytes
        shipment = Shipment(commit, move, *place, self.anchor.slot_keys[move.receiver])
        ways = f"from worker {move.sender} to worker {move.receiver}"
        with self._explained(), described(self.spark, f"{self.name}: move groups {ways}"):
            return shipment.send(self.anchor)

    def sample(
        self, rows: SparkRows, count: int, pairs: Sequence[Pair]
    ) -> Future[Mapping[Pair, float]]:
        """Look among the rows of a batch, in a job beside those of batches."""
        return self._sampler.submit(self._sampled, rows, count, pairs)

    def _sampled(
        self, rows: SparkRows, count: int, pairs: Sequence[Pair]
    ) -> Mapping[Pair, float]:
        with self._explained(rows):
            return sampled(self.splits.union, rows.read(), count, pairs)

    def resize(self, workers: int) -> None:
        """Drop another anchor, with room for so many."""
        before = self.anchor
        with described(self.spark, f"{self.name}: place the workers"):
            self.anchor = drop_anchor(self.spark, workers)
        before.release()

    def rows(self, frame: DataFrame) -> SparkRows:
        """The rows that Spark brings in one frame for all streams."""
        return SparkRows(frame.sparkSession, partial(self.splits.union.gathered, frame))

    @property
    def keeps_bad(self) -> bool:
        """Whether rows that an expression fails for are kept apart."""
        return self.splits.union.keeps_bad

    def check(self) -> None:
        """Raise an error if Spark is gone."""
        if lost := lost_spark(self.spark):
            raise lost

    def close(self) -> None:
        """Let go of the executors, and of what they keep in memory."""
        for side in (self._porter, self._sampler):
            side.shutdown(wait=False, cancel_futures=True)
        with suppress(Exception):  # Spark may be gone, and with it what it holds
            self.anchor.visit(partial(release_memory, self.incarnation))
            self.anchor.release()
        release_memory(self.incarnation)

    @contextmanager
    def _explained(self, rows: SparkRows | None = None) -> Iterator[None]:
        """Turn Spark's faults into errors that are final, or worth another try."""
        try:
            with unlogged():  # what goes wrong is told by an event, or by the error
                yield
        except (BraidError, TryAgain):
            raise
        except Exception as fault:
            spark = self.spark if rows is None else rows.spark
            reason = lost_spark(spark) or explain_fault(fault, keeps_bad=self.keeps_bad)
            if isinstance(reason, BraidError):
                raise reason from None
            raise TryAgain(reason) from fault
