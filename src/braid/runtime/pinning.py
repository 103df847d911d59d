"""Pinning workers to executors, in plain PySpark.

A cached *anchor* frame has one row per worker, hash-partitioned by a *slot key*. Joining a
batch with the anchor shuffles only the batch, and Spark prefers to run partition i where the
anchor's partition i is cached: so worker i stays on its executor. If that executor dies, Spark
caches the anchor's partition elsewhere, and the worker follows it, finds no run files there,
and makes them again from the log. Correctness never depends on pinning; only speed does.
"""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_SPREAD_S = 0.3  # long enough for every executor to take its share of the anchor's tasks


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where the workers are held; `slot_keys[i]` hashes to partition i."""

    frame: DataFrame
    slot_keys: tuple[int, ...]

    def pin(self, rows: DataFrame) -> DataFrame:
        """Rows with a column `slot`, on their workers' executors, without that column."""
        columns = [name for name in rows.columns if name != "slot"]
        return rows.join(self.frame.hint("shuffle_hash"), "slot").select(*columns)

    def release(self) -> None:
        """Let go of the executors."""
        self.frame.unpersist()


def drop_anchor(spark: SparkSession, workers: int) -> Anchor:
    """Cache one anchor row per worker, spread over the executors there are."""
    _warn_if_unpinned(spark)
    slot_keys = _slot_keys(spark, workers)
    frame = spark.createDataFrame([(key,) for key in slot_keys], "slot int")
    frame = frame.repartition(workers, "slot")
    if _executors(spark) > 1:
        frame = frame.mapInArrow(_slowly, "slot int").repartition(workers, "slot")
    frame = frame.persist()
    frame.count()
    return Anchor(frame, slot_keys)


def _slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    time.sleep(_SPREAD_S)
    yield from batches


def _slot_keys(spark: SparkSession, workers: int) -> tuple[int, ...]:
    """For each partition, the smallest integer that Spark's hash partitioner sends there."""
    upper = 64 * workers + 64
    place = F.expr(f"pmod(hash(cast(id AS int)), {workers})").alias("place")
    rows = spark.range(upper).groupBy(place).agg(F.min("id").alias("key")).collect()
    found = {row["place"]: int(row["key"]) for row in rows}
    return tuple(found[place] for place in range(workers))


def _executors(spark: SparkSession) -> int:
    """How many processes run tasks; the driver is listed too, in local mode alone."""
    listed: int = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
    return max(1, listed - 1)


def _warn_if_unpinned(spark: SparkSession) -> None:
    local = re.match(r"local(\[|$)", str(spark.sparkContext.master))
    wandering = spark.sparkContext.getConf().get("spark.shuffle.reduceLocality.enabled", "true")
    if not local and wandering != "false":
        warnings.warn(
            "workers will wander between executors, and rebuild their state each time: start "
            "Spark with braid.session(), or set spark.shuffle.reduceLocality.enabled=false",
            stacklevel=2,
        )
