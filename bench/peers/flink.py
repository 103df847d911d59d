"""Flink's interval joins: Table API SQL on a local mini cluster, heap state, parallelism two.

The pip package has no Parquet format, so the rows come as CSV (in a trial, scanning alone ran
about ten times as fast as the join). All three streams lie in one file in time order, and
filters take them apart: read from three files, the stream that joins last races ahead, since
its rows cost least, and fills the state with rows whose partners are far away. Both ways are
exact and took about the same time.

Progress is the number of rows that left the source, asked of the cluster's REST endpoint; the
last sample is the end of the job, when all results are on disk.
"""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow.csv
from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

from bench.measurement import Progress, argument_parser, measure
from bench.workload import STREAMS, WINDOW_MS, merged_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POLL_SECONDS = 0.25
SOURCE = """
    CREATE TABLE merged (
        tag INT, ts_ms BIGINT, k BIGINT, v BIGINT,
        ts AS TO_TIMESTAMP_LTZ(ts_ms, 3), WATERMARK FOR ts AS ts
    ) WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
"""
SINK = """
    CREATE TABLE results (k BIGINT, va BIGINT, vb BIGINT, vc BIGINT)
    WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
"""
# `b`'s time crosses the second join as a number: only one pair of event times may bound it.
QUERY = """
    INSERT INTO results
    SELECT ab.k, ab.va, ab.vb, c.v
    FROM (
        SELECT a.k, a.ts, a.v AS va, b.v AS vb, b.ts_ms AS ms_b
        FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts - {window} AND b.ts + {window}
    ) ab
    JOIN c ON ab.k = c.k AND c.ts BETWEEN ab.ts - {window} AND ab.ts + {window}
        AND ABS(c.ts_ms - ab.ms_b) <= {window_ms}
"""


def open_environment(rest_port: int) -> TableEnvironment:
    """A streaming environment tuned for throughput, without checkpoints."""
    configuration = Configuration()
    for key, value in {
        "parallelism.default": "2",
        "taskmanager.numberOfTaskSlots": "2",
        "pipeline.object-reuse": "true",
        "state.backend.type": "hashmap",
        "table.local-time-zone": "UTC",
        "rest.port": str(rest_port),
        "rest.bind-port": str(rest_port),
        "metrics.fetcher.update-interval": str(round(POLL_SECONDS * 1000)),
    }.items():
        configuration.set_string(key, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode()
    return TableEnvironment.create(settings.with_configuration(configuration).build())


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def rows_read(rest_port: int, job_id: str) -> int:
    """Rows that have left the source so far."""
    url = f"http://localhost:{rest_port}/jobs/{job_id}"
    with urllib.request.urlopen(url, timeout=5) as answer:
        vertices = json.load(answer)["vertices"]
    sources = [vertex for vertex in vertices if vertex["name"].startswith("Source")]
    return sum(vertex["metrics"]["write-records"] for vertex in sources)


@contextmanager
def sampled(rest_port: int, job_id: str, started: float) -> Iterator[list[tuple[float, int]]]:
    """Collect the progress curve in the background while the block runs."""
    curve: list[tuple[float, int]] = []
    done = threading.Event()

    def sample() -> None:
        while not done.wait(POLL_SECONDS):
            try:
                rows = rows_read(rest_port, job_id)
            except (urllib.error.URLError, ConnectionError, TimeoutError, KeyError):
                continue  # the endpoint goes down with the job
            curve.append((time.perf_counter() - started, rows))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield curve
    finally:
        done.set()
        thread.join()


def run(input_dir: Path, output_dir: Path, batches: int | None) -> Progress:
    """Convert the input, then join it into CSV files."""
    output_dir.mkdir(parents=True)
    rows = merged_rows(input_dir, batches)
    merged, results = output_dir.resolve() / "merged.csv", output_dir.resolve() / "results"
    pyarrow.csv.write_csv(rows, merged, pyarrow.csv.WriteOptions(include_header=False))

    rest_port = free_port()
    environment = open_environment(rest_port)
    environment.execute_sql(SOURCE.format(path=merged))
    for position, stream in enumerate(STREAMS):
        environment.execute_sql(
            f"CREATE VIEW {stream} AS SELECT ts_ms, k, v, ts FROM merged WHERE tag = {position}"
        )
    environment.execute_sql(SINK.format(path=results))
    window = f"INTERVAL '{WINDOW_MS // 1000}' SECOND"
    started = time.perf_counter()
    job = environment.execute_sql(QUERY.format(window=window, window_ms=WINDOW_MS))
    with sampled(rest_port, str(job.get_job_client().get_job_id()), started) as curve:
        job.wait()
        seconds = time.perf_counter() - started
    curve.append((seconds, len(rows)))
    return Progress(curve, count_lines(results))


def count_lines(directory: Path) -> int:
    """Result rows in all part files."""
    count = 0
    for path in directory.glob("part-*"):
        with path.open("rb") as lines:
            count += sum(1 for _ in lines)
    return count


def main() -> None:
    """Run as a script."""
    arguments = argument_parser(__doc__).parse_args()
    progress = run(arguments.input_dir, arguments.output_dir, arguments.batches)
    notes = "parallelism 2, object reuse, heap state, no checkpoints; CSV to CSV"
    measure("flink", progress, arguments, notes).print()


if __name__ == "__main__":
    main()
