"""Pathway's interval joins: streaming mode, two worker threads, CSV files in time order.

**State is not bounded here**, in Pathway's favour. Forgetting (`common_behavior(cutoff=...)`)
doubled its processor time in a trial, and with two workers it loses results: they share the
files out between them and drift apart in event time, while each side of a join forgets by its
own clock. So this run keeps every row it has seen: exact, and faster, while the memory lasts.

The source reads ahead without bound and would put the whole input into one commit. So its
backlog is limited, to about one batch of rows.

Streaming mode has no end. Counters of the inputs and of the results meet in one table, whose
changes come out commit by commit, each when the commit is joined to the end. They give the
progress curve, and when the inputs are used up, the process reports and leaves.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

os.environ.setdefault("PATHWAY_THREADS", "2")  # read when the module is imported

import pathway as pw
import pyarrow.csv
import pyarrow.parquet as pq

from bench.measurement import Progress, argument_parser, measure
from bench.workload import EPOCH_MS, STREAMS, WINDOW_MS, batch_files, count_input_rows, ts_ms

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

FILES_PER_BATCH = 5  # a file cannot be split between commits, nor between workers
COMMIT_MS = 500


class Row(pw.Schema):
    """A line of an input file."""

    ts_ms: int
    k: int
    v: int


def write_csv_files(input_dir: Path, target: Path, batches: int | None) -> None:
    """Cut each Parquet file into a few CSV files, whose modification times give the order."""
    for stream in STREAMS:
        (target / stream).mkdir(parents=True)
        for number, source in enumerate(batch_files(input_dir, stream, batches)):
            rows = pq.read_table(source)
            columns = {"ts_ms": ts_ms(rows), "k": rows["k"], "v": rows["v"]}
            file_rows = -(-len(rows) // FILES_PER_BATCH)
            for part in range(FILES_PER_BATCH):
                path = target / stream / f"{number:05d}-{part}.csv"
                piece = pyarrow.table(columns).slice(part * file_rows, file_rows)
                pyarrow.csv.write_csv(piece, path)
                os.utime(path, (EPOCH_MS // 1000 + number * FILES_PER_BATCH + part,) * 2)


def read_stream(path: Path, backlog_rows: int) -> pw.Table:
    """One stream, read as fast as the join takes it."""
    return pw.io.csv.read(
        path,
        schema=Row,
        mode="streaming",
        autocommit_duration_ms=COMMIT_MS,
        max_backlog_size=backlog_rows,
    )


def join(a: pw.Table, b: pw.Table, c: pw.Table) -> pw.Table:
    """The query."""
    within = pw.temporal.interval(-WINDOW_MS, WINDOW_MS)
    pairs = a.interval_join(b, a.ts_ms, b.ts_ms, within, a.k == b.k).select(
        k=a.k, va=a.v, vb=b.v, ms_a=a.ts_ms, ms_b=b.ts_ms
    )
    triples = pairs.interval_join(c, pairs.ms_a, c.ts_ms, within, pairs.k == c.k).select(
        k=pairs.k, va=pairs.va, vb=pairs.vb, vc=c.v, gap_ms=c.ts_ms - pairs.ms_b
    )
    in_window = (pw.this.gap_ms >= -WINDOW_MS) & (pw.this.gap_ms <= WINDOW_MS)
    return triples.filter(in_window).without("gap_ms")


class Observer:
    """Follows the counters and reports when the last input row is joined."""

    def __init__(self, arguments: argparse.Namespace, input_rows: int) -> None:
        """Start the clock for a run over `input_rows`."""
        self.arguments = arguments
        self.input_rows = input_rows
        self.counts: dict[str, int] = {}
        self.curve: list[tuple[float, int]] = []
        self.started = time.perf_counter()

    def watch(self, **tables: pw.Table) -> None:
        """Count the rows of each table; the one named `results` is the output."""
        counters = [
            table.reduce(count=pw.reducers.count()).with_columns(name=name)
            for name, table in tables.items()
        ]
        pw.io.subscribe(
            pw.Table.concat_reindex(*counters),
            on_change=self.on_change,
            on_time_end=self.on_commit_joined,
        )

    def on_change(self, key: pw.Pointer, row: dict, time: int, is_addition: bool) -> None:
        """A counter moved: the old value is withdrawn, the new one added."""
        if is_addition:
            self.counts[row["name"]] = row["count"]

    def on_commit_joined(self, commit: int) -> None:
        """All counters of a commit are in."""
        done = sum(self.counts.get(stream, 0) for stream in STREAMS)
        self.curve.append((time.perf_counter() - self.started, done))
        if done == self.input_rows:
            self.report()

    def report(self) -> None:
        """Print the measurement and end the process."""
        progress = Progress(self.curve, self.counts.get("results", 0))
        notes = "2 threads, state never forgotten; CSV in, results counted but not written"
        measure("pathway", progress, self.arguments, notes).print()
        os._exit(0)


def main() -> None:
    """Run as a script."""
    arguments = argument_parser(__doc__).parse_args()
    source = arguments.output_dir / "input"
    write_csv_files(arguments.input_dir, source, arguments.batches)
    backlog_rows = count_input_rows(arguments.input_dir, batches=1) // len(STREAMS)
    streams = {stream: read_stream(source / stream, backlog_rows) for stream in STREAMS}
    observer = Observer(arguments, count_input_rows(arguments.input_dir, arguments.batches))
    observer.watch(**streams, results=join(**streams))
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


if __name__ == "__main__":
    main()
