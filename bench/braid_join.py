"""Braid on the input, and Braid with its join replaced by a pass-through, the ceiling.

The pass-through reads, tags, hashes, splits and shuffles as Braid does, and hands the same
Arrow batches to the same pinned Python workers; but they only count the rows. No sorting, no
log, no state, no results: nothing that joins in Python on Spark can be faster than this.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

import braid
from bench.measurement import Progress, argument_parser, measure
from bench.workload import STREAMS, WINDOW_MS, link_prefix
from braid.runtime.files import Shelf
from braid.runtime.pinning import drop_anchor
from braid.runtime.session import quiet
from braid.runtime.split import slot_expression, tagged
from braid.state.commit import equal_shares

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from braid import ContinuousQuery

WORKERS, GROUPS = 2, 256
QUERY = (
    "SELECT a.k, a.v AS va, b.v AS vb, c.v AS vc FROM "
    + ", ".join(f"{stream} [RANGE {WINDOW_MS} MILLISECONDS]" for stream in STREAMS)
    + " WHERE a.k = b.k AND b.k = c.k"
)


def measure_braid(input_dir: Path, out_dir: Path, pass_through: bool) -> Progress:
    """Join all files, one of each stream per batch, into Parquet; or only move them."""
    a, b, c = (braid.files(input_dir / stream) for stream in STREAMS)
    query = braid.query(QUERY, event_time="ts", a=a, b=b, c=c)
    return _pass_through(query) if pass_through else _join(query, out_dir)


def _join(query: ContinuousQuery, out_dir: Path) -> Progress:
    run = query.start(
        checkpoint=out_dir / "checkpoint",
        sink=braid.sinks.parquet(out_dir / "results"),
        workers=WORKERS,
        groups=GROUPS,
    )
    run.await_termination()
    batches = [event for event in run.events() if event["event"] == "batch"]
    seconds = accumulate(batch["elapsed_ms"] / 1000 for batch in batches)
    rows = accumulate(batch["input_rows"] for batch in batches)
    return Progress(list(zip(seconds, rows, strict=True)), run.progress.output_rows)


def _pass_through(query: ContinuousQuery) -> Progress:
    plan = replace(query.plan, groups=GROUPS)
    shelf = Shelf.browse({name: r.stream for name, r in query.readers.items()}, None)
    anchor = drop_anchor(query.spark, WORKERS)
    quiet(query.spark, WORKERS)
    slot = slot_expression(plan, equal_shares(GROUPS, WORKERS), anchor.slot_keys)
    curve, rows, seconds = [], 0, 0.0
    while shelf.left():
        began = time.monotonic()
        taken = shelf.take()
        frames = {n: r.read(taken[n], ["ts", "k", "v"]) for n, r in query.readers.items()}
        split = anchor.pin(tagged(plan, frames).selectExpr("*", f"{slot} AS slot"))
        rows += sum(row["rows"] for row in split.mapInArrow(_count, "rows bigint").collect())
        shelf.advance(taken)
        seconds += time.monotonic() - began
        curve.append((seconds, rows))
    return Progress(curve, 0)


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": [rows]})


def main() -> None:
    """Run as a script."""
    parser = argument_parser(__doc__)
    parser.add_argument("--pass-through", action="store_true")
    arguments = parser.parse_args()
    braid.session("local[2]", spark_driver_memory="8g")  # what its peers get
    source = link_prefix(arguments.input_dir, arguments.output_dir / "input", arguments.batches)
    progress = measure_braid(source, arguments.output_dir, arguments.pass_through)
    system = "braid-pass-through" if arguments.pass_through else "braid"
    notes = "rows counted, not joined" if arguments.pass_through else "Parquet to Parquet"
    measure(system, progress, arguments, f"2 workers, 256 groups; {notes}").print()


if __name__ == "__main__":
    main()
