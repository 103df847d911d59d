"""Braid on the input, and Braid with its join replaced by a pass-through, the ceiling.

The pass-through reads, tags, hashes, splits and shuffles as Braid does, and hands the same
Arrow batches to the same pinned Python workers; but they only count the rows. No sorting, no
log, no state, no results: nothing that joins in Python on Spark can be faster than this.
"""

from __future__ import annotations

import datetime as dt
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import braid
from bench.measurement import Progress, argument_parser, measure
from bench.workload import STREAMS, WINDOW_MS, batch_files, link_prefix
from braid.engine.shelf import Shelf
from braid.plan.placement import ByHash
from braid.spark.pinning import drop_anchor
from braid.spark.session import quiet
from braid.spark.sources import SparkSources
from braid.spark.split import Splits, slot_expression
from braid.spark.supply import union_of
from braid.spark.union import united

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from braid import ContinuousQuery

WORKERS, GROUPS = 2, 256
_FROM = " FROM " + ", ".join(f"{s} [RANGE {WINDOW_MS} MILLISECONDS]" for s in STREAMS)
_COLUMNS = "a.k, a.v AS va, b.v AS vb, c.v AS vc"
_JOIN = f"SELECT {_COLUMNS}{_FROM} WHERE a.k = b.k AND b.k = c.k"
_ONE_IN_100 = "".join(f" AND {stream}.v % 100 = 0" for stream in STREAMS)
FORMS = {
    "join": _JOIN,
    "chain": f"SELECT {_COLUMNS}{_FROM} WHERE a.k = b.k AND b.j = c.j",
    "filtered": _JOIN + _ONE_IN_100,
    "grouped": _JOIN.replace(
        _COLUMNS, "a.v % 100 AS part, count(*) AS n, sum(b.v) AS s"
    ).replace("MILLISECONDS]", "MILLISECONDS SLIDE 1 SECOND]", 1)
    + " GROUP BY a.v % 100",
}
"""Queries over the same rows; the first is the one that all systems run."""


def measure_braid(input_dir: Path, out_dir: Path, form: str, pass_through: bool) -> Progress:
    """Join all files, one of each stream per batch, into Parquet; or only move them."""
    a, b, c = (braid.files(input_dir / stream) for stream in STREAMS)
    query = braid.query(FORMS[form], event_time="ts", a=a, b=b, c=c)
    if pass_through:
        return _pass_through(query)
    files = [batch_files(input_dir, stream) for stream in STREAMS]
    per_batch = [
        sum(pq.read_metadata(p).num_rows for p in paths) for paths in zip(*files, strict=True)
    ]
    return _join(query, out_dir, per_batch)


def _join(query: ContinuousQuery, out_dir: Path, per_batch: Sequence[int]) -> Progress:
    run = query.start(
        checkpoint=out_dir / "checkpoint",
        sink=braid.sinks.parquet(out_dir / "results"),
        workers=WORKERS,
        groups=GROUPS,
    )
    run.await_termination()
    first, *_ = run.events()
    batches = [event for event in run.events() if event["event"] == "batch"]
    began = dt.datetime.fromisoformat(first["at"])
    ends = (dt.datetime.fromisoformat(batch["at"]) for batch in batches)
    seconds = ((end - began).total_seconds() for end in ends)
    # What was read counts, not what passed a filter. The last batch of a grouped query closes
    # groups, and reads nothing.
    rows = accumulate(per_batch)
    return Progress(list(zip(seconds, rows, strict=False)), run.progress.output_rows)


def _pass_through(query: ContinuousQuery) -> Progress:
    plan, sources = query.plan(groups=GROUPS), query.sources
    assert isinstance(sources, SparkSources), "it reads folders through Spark"
    readers, spark = sources.readers, sources.spark
    shelf = Shelf.browse({name: reader.stream for name, reader in readers.items()}, {})
    anchor = drop_anchor(spark, WORKERS)
    quiet(spark, WORKERS)
    slot = slot_expression(plan, 0, [ByHash.equal_shares(GROUPS, WORKERS)], anchor.slot_keys)
    union = union_of(sources, plan, keeps_bad=False)
    splits = Splits(union)

    def prepare() -> DataFrame:
        taken = shelf.take()
        frames = {n: r.read(taken[n], ["ts", "k", "v"]) for n, r in readers.items()}
        rows = united(splits.entering(plan, union.apart(frames), 0))
        sent = anchor.pin(rows.selectExpr("*", f"{slot} AS slot"))
        counts = sent.mapInArrow(_count, "rows bigint")
        counts._jdf.queryExecution().executedPlan()
        return counts

    curve, rows, began = [], 0, time.monotonic()
    with ThreadPoolExecutor(1) as ahead:  # as Braid plans one batch ahead
        upcoming = ahead.submit(prepare)
        while upcoming is not None:
            counts = upcoming.result()
            upcoming = None if shelf.is_empty() else ahead.submit(prepare)
            rows += sum(row["rows"] for row in counts.collect())
            curve.append((time.monotonic() - began, rows))
    return Progress(curve, 0)


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": [rows]})


def main() -> None:
    """Run as a script."""
    parser = argument_parser(__doc__)
    parser.add_argument("--pass-through", action="store_true")
    parser.add_argument("--form", choices=FORMS, default="join")
    parser.add_argument("--passes", type=int, default=1, help="the last one is measured")
    arguments = parser.parse_args()
    braid.session("local[2]", spark_driver_memory="8g")  # what its peers get
    source = link_prefix(arguments.input_dir, arguments.output_dir / "input", arguments.batches)
    for number in range(arguments.passes):
        scratch = arguments.output_dir / str(number)
        progress = measure_braid(source, scratch, arguments.form, arguments.pass_through)
    system = "braid-pass-through" if arguments.pass_through else "braid"
    notes = "rows counted, not joined" if arguments.pass_through else "Parquet to Parquet"
    measure(system, progress, arguments, f"2 workers, 256 groups; {notes}").print()


if __name__ == "__main__":
    main()
