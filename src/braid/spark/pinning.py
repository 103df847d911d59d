"""Pinning workers to executors, in plain PySpark.

A cached *anchor* frame has one row per worker, hash-partitioned by a *slot key*. Joining a
batch with the anchor shuffles only the batch, and Spark prefers to run partition i where the
anchor's partition i is cached: so worker i stays on its executor. If that executor dies, Spark
caches the anchor's partition elsewhere, and the worker follows it, finds no run files there,
and makes them again from the log. Correctness never depends on pinning; only speed does.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.spark.session import unpinned
from braid.spark.task import executor_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

_NAPS_S = (0.3, 1.0, 3.0)
"""How long each of the anchor's tasks naps, so that every executor takes its share; a nap that
was too short for that is followed by a longer one."""

_warned: set[str] = set()  # applications that were told that they lack settings

_SETTLED_S, _LONGEST_WAIT_S = 1.0, 30.0  # executors of an application turn up one by one
_VISIT_S = 10.0  # more than a job of nothing takes; executors may be gone


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where the workers are held; `slot_keys[i]` hashes to partition i.

    `held` is what batches join with: `frame`, with all that can be said of it said once.
    """

    frame: DataFrame
    held: DataFrame
    slot_keys: tuple[int, ...]

    @classmethod
    def of(cls, frame: DataFrame, slot_keys: tuple[int, ...]) -> Anchor:
        """Hold the workers where a cached frame's partitions lie."""
        return cls(frame, frame.select("slot").hint("shuffle_hash"), slot_keys)

    def pin(self, rows: DataFrame) -> DataFrame:
        """Rows with a column `slot`, on their workers' executors, without that column."""
        return rows.join(self.held, "slot").drop("slot")

    def visit(self, act: Callable[[], None]) -> None:
        """Have something done on every executor that holds a worker, if it can be in time."""
        spark = self.frame.sparkSession
        if _is_local(spark) or not _other_processes(spark):
            return
        tag, done = f"braid-{uuid.uuid4().hex}", threading.Event()

        def go(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            act()
            return iter(())

        def work() -> None:
            with suppress(Exception):
                spark.sparkContext.addJobTag(tag)
                self.held.mapInArrow(go, "slot int").collect()
            done.set()

        threading.Thread(target=work, name="braid-visit", daemon=True).start()
        if not done.wait(_VISIT_S):
            spark.sparkContext.cancelJobsWithTag(tag)

    def release(self) -> None:
        """Let go of the executors."""
        self.frame.unpersist()


def drop_anchor(spark: SparkSession, workers: int) -> Anchor:
    """Cache one anchor row per worker, spread over the executors there are."""
    _warn_if_unpinned(spark)
    slot_keys = _slot_keys(spark, workers)
    executors = _executors(spark)
    if executors == 1:
        return Anchor.of(_cached(spark, slot_keys), slot_keys)
    for nap_s in _NAPS_S:
        frame = _cached(spark, slot_keys, nap_s)
        if _most_on_one(frame) <= -(-workers // executors):
            break
        if nap_s < _NAPS_S[-1]:
            frame.unpersist(blocking=True)
    return Anchor.of(frame, slot_keys)


def _cached(spark: SparkSession, slot_keys: Sequence[int], nap_s: float = 0) -> DataFrame:
    """The anchor's frame, each partition where its task happened to run."""
    # A name of its own: Spark would take two runs' equal frames for one, and release both.
    rows = f"'{uuid.uuid4().hex}' AS name", f"explode(array({','.join(map(str, slot_keys))}))"
    frame = spark.range(1).selectExpr(*rows).toDF("name", "slot")
    frame = frame.repartition(len(slot_keys), "slot")
    if nap_s:
        # Java's sleep, since a step in Python would make Spark forget the partitioning.
        nap = f"java_method('java.lang.Thread', 'sleep', {round(nap_s * 1000)}L) AS nap"
        frame = frame.selectExpr("*", nap)
    frame = frame.persist()
    frame.count()
    return frame


def _most_on_one(frame: DataFrame) -> int:
    """The most partitions that one executor holds."""
    places = frame.mapInArrow(_place, "executor string").collect()
    return max(Counter(row["executor"] for row in places).values())


def _place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"executor": [executor_name()]})


def _slot_keys(spark: SparkSession, workers: int) -> tuple[int, ...]:
    """For each partition, the smallest integer that Spark's hash partitioner sends there."""
    keys = f"sequence(0, {64 * workers + 64})"  # in one row, which needs no shuffle to find out
    row = spark.sql(f"SELECT transform({keys}, key -> pmod(hash(key), {workers}))").first()
    assert row is not None, "a query of one row has a first"
    smallest: dict[int, int] = {}
    for key, place in enumerate(row[0]):
        smallest.setdefault(place, key)
    return tuple(smallest[place] for place in range(workers))


def _executors(spark: SparkSession) -> int:
    """How many processes run tasks, once no more of them turn up."""
    if _is_local(spark):
        return 1
    known, began = 0, time.monotonic()
    since = began
    while (now := time.monotonic()) < min(since + _SETTLED_S, began + _LONGEST_WAIT_S):
        found = _other_processes(spark)
        if found != known:
            known, since = found, now
        time.sleep(_SETTLED_S / 10)
    return max(1, known)


def _other_processes(spark: SparkSession) -> int:
    """How many processes run tasks now, besides the driver, which is listed too."""
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1


def _is_local(spark: SparkSession) -> bool:
    return re.match(r"local(\[|$)", str(spark.sparkContext.master)) is not None


def _warn_if_unpinned(spark: SparkSession) -> None:
    """Tell once of each application of Spark's that it lacks settings."""
    context = spark.sparkContext
    lacking = [] if _is_local(spark) else unpinned(dict(context.getConf().getAll()))
    if lacking and context.applicationId not in _warned:
        _warned.add(context.applicationId)
        warnings.warn(
            "workers will wander between executors, and rebuild their state each time: start "
            f"Spark with braid.session(), or with {' and '.join(lacking)}",
            stacklevel=2,
        )
