"""Spark's own stream-stream joins, with the HDFS-backed (default) or the RocksDB state store.

Two traps are walked around here:

* A join of three streams has three event-time columns, which Spark refuses. So `b`'s timestamp
  passes the second join as a number, which drops its watermark; the bounds on it still hold,
  and `a`'s timestamp alone tells Spark what may be forgotten.
* The file source orders by modification time; `bench.workload` sets it to follow the names.
"""

from __future__ import annotations

import json
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow.dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.measurement import Progress, argument_parser, measure
from bench.workload import WINDOW_MS, link_prefix

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql.streaming import StreamingQuery

STREAMING = "spark.sql.streaming"
COMMON = {
    "spark.driver.memory": "8g",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",  # each costs four state stores per join
    f"{STREAMING}.noDataMicroBatches.enabled": "false",
    f"{STREAMING}.minBatchesToRetain": "2",
    f"{STREAMING}.numRecentProgressUpdates": "1000",
}
ROCKSDB = f"{STREAMING}.stateStore.rocksdb"
STORES = {
    "default": {},
    "rocksdb": {
        f"{STREAMING}.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        f"{ROCKSDB}.changelogCheckpointing.enabled": "true",
        f"{ROCKSDB}.trackTotalNumberOfRows": "false",  # else every write reads first
        # Ordered by time, so that eviction need not scan. Not the default (2), but faster.
        f"{STREAMING}.join.stateFormatVersion": "4",
    },
}

SECOND_KEYS = {"join": "k_a = k_c", "chain": "j_b = j_c"}


def open_session(store: str) -> SparkSession:
    """A local session on two cores with the given state store."""
    builder = SparkSession.builder.master("local[2]").appName(f"native-{store}")
    for key, value in (COMMON | STORES[store]).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def read_stream(session: SparkSession, path: Path) -> DataFrame:
    """One stream, a file per batch; columns carry the stream's name: `k_a`, `ts_a`, `v_a`."""
    rows = (
        session.readStream.schema("ts timestamp, k bigint, j bigint, v bigint")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(path))
        .withWatermark("ts", "0 seconds")
    )
    return rows.select(*(F.col(name).alias(f"{name}_{path.name}") for name in rows.columns))


def join(a: DataFrame, b: DataFrame, c: DataFrame, second_key: str) -> DataFrame:
    """The query, or its like that joins `c` on another key."""
    window = f"INTERVAL {WINDOW_MS} MILLISECONDS"
    pairs = a.join(
        b,
        F.expr(f"k_a = k_b AND ts_a BETWEEN ts_b - {window} AND ts_b + {window}"),
    ).select("k_a", "j_b", "ts_a", "v_a", "v_b", F.expr("unix_millis(ts_b)").alias("ms_b"))
    triples = pairs.join(
        c,
        F.expr(
            f"{second_key} AND ts_c BETWEEN ts_a - {window} AND ts_a + {window}"
            f" AND abs(unix_millis(ts_c) - ms_b) <= {WINDOW_MS}"
        ),
    )
    return triples.selectExpr("k_a AS k", "v_a AS va", "v_b AS vb", "v_c AS vc")


def batch_curve(query: StreamingQuery) -> list[tuple[float, int]]:
    """Progress from Spark's own report: each batch's rows, and its whole trigger's duration."""
    batches = [json.loads(progress.json) for progress in query.recentProgress]
    batches = [batch for batch in batches if batch["numInputRows"]]
    seconds = accumulate(batch["durationMs"]["triggerExecution"] / 1000 for batch in batches)
    rows = accumulate(batch["numInputRows"] for batch in batches)
    return list(zip(seconds, rows, strict=True))


def run(
    session: SparkSession,
    input_dir: Path,
    output_dir: Path,
    batches: int | None,
    second_key: str,
) -> Progress:
    """Join everything that is there, file by file, into Parquet."""
    source = link_prefix(input_dir, output_dir / "input", batches)
    results = output_dir / "results"
    query = (
        join(*(read_stream(session, source / stream) for stream in ("a", "b", "c")), second_key)
        .writeStream.format("parquet")
        .option("path", str(results))
        .option("checkpointLocation", str(output_dir / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    written = pyarrow.dataset.dataset(results, format="parquet", ignore_prefixes=["_", "."])
    return Progress(batch_curve(query), written.count_rows())


def main() -> None:
    """Run as a script."""
    parser = argument_parser(__doc__)
    parser.add_argument("--store", choices=STORES, default="default")
    parser.add_argument("--form", choices=SECOND_KEYS, default="join")
    arguments = parser.parse_args()
    session = open_session(arguments.store)
    progress = run(
        session,
        arguments.input_dir,
        arguments.output_dir,
        arguments.batches,
        SECOND_KEYS[arguments.form],
    )
    notes = "2 shuffle partitions, Parquet to Parquet; rate from per-batch trigger durations"
    if arguments.store == "rocksdb":
        notes += "; changelog checkpoints, join state format 4"
    measure(f"spark-{arguments.store}", progress, arguments, notes).print()
    session.stop()


if __name__ == "__main__":
    main()
