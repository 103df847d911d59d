"""The life of a run: progress, stops, restarts, failures, late rows, idle streams."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model.errors import BraidError
from braid.record.checkpoint import read_sealed
from braid.record.commit import Commit
from braid.spark.faults import unlogged_end
from braid.worker.memory_tier import memory_root
from tests.oracle.answers import counted
from tests.oracle.values import EPOCH, TIME
from tests.spark.faulty import InPlace, with_cluster
from tests.spark.folders import date, stream_of
from tests.spark.kill_workloads import (
    FLAT,
    GROUPS,
    HISTORY,
    LATENESS_S,
    STREAMS,
    TREE,
    Input,
    Workload,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from braid.events import Event
    from braid.spark.sources import Stream

pytestmark = pytest.mark.spark

PAIRS = """\
SELECT a.k, a.v AS va, b.v AS vb
FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS]
WHERE a.k = b.k"""
SCHEMA = "k bigint, ts timestamp, v bigint"
PATIENCE_S = 120


class Folder:
    """A folder that files are added to, as a stream of either sort."""

    def __init__(self, path: Path, schema: str = SCHEMA) -> None:
        self.path = path
        self.schema = schema
        self.count = 0
        path.mkdir(parents=True)

    def add(self, *rows: tuple[int, float, int]) -> None:
        """A file of rows (k, seconds, v)."""
        keys, seconds, values = zip(*rows, strict=True)
        times = [EPOCH + dt.timedelta(seconds=s) for s in seconds]
        self.add_table(pa.table({"k": keys, "ts": pa.array(times, TIME), "v": values}))

    def add_table(self, table: pa.Table) -> None:
        """A file of any rows; later files are younger, as Spark sees it."""
        pending = self.path.with_suffix(".pending")
        pq.write_table(table, pending)
        date(pending, self.count)
        os.rename(pending, self.path / f"{self.count:03}.parquet")
        self.count += 1

    def stream(self, spark: SparkSession | None) -> Stream:
        return stream_of(self.path, spark, self.schema)


@pytest.fixture
def a(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "a")


@pytest.fixture
def b(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "b")


@pytest.fixture(params=["frames", "folders"])
def frames_or_folders(request: pytest.FixtureRequest, spark: SparkSession) -> Any:
    return spark if request.param == "frames" else None


def wait_until(happened: Callable[[], bool], run: braid.Run) -> None:
    began = time.monotonic()
    while not happened():
        assert not run.await_termination(0.1), "the run ended early"
        assert time.monotonic() < began + PATIENCE_S


def values(sink: Any) -> Counter[tuple[int, int]]:
    return Counter((row["va"], row["vb"]) for row in sink.rows())


def names(run: braid.Run) -> list[str]:
    return [event["event"] for event in run.events()]


def test_a_run_tells_its_progress_stops_and_goes_on(spark, tmp_path, a, b):
    a.add((1, 0, 10), (2, 1, 11))
    b.add((1, 2, 20))
    query = braid.query(PAIRS, a=a.stream(spark), b=b.stream(spark), event_time="ts")
    sink = braid.sinks.memory()
    run = query.start(checkpoint=tmp_path / "c", sink=sink, workers=2, groups=8)
    wait_until(lambda: run.progress.input_rows == 3, run)
    b.add((2, 3, 21))
    wait_until(lambda: run.progress.input_rows == 4, run)
    with pytest.raises(braid.CheckpointError, match="in use"):
        query.start(checkpoint=tmp_path / "c", sink=braid.sinks.memory(), workers=2, groups=8)
    run.stop()
    assert run.await_termination()
    assert values(sink) == Counter([(10, 20), (11, 21)])
    assert run.progress.batches == 2
    assert run.progress.output_rows == 2
    assert run.progress.watermark == "2024-01-01T00:00:01.000Z"
    assert names(run) == ["started", "batch", "batch", "finished"]
    assert run.events()[-1]["reason"] == "stopped"

    a.add((2, 4, 12))
    sink = braid.sinks.memory()
    run = query.start(checkpoint=tmp_path / "c", sink=sink, workers=3, groups=8)
    wait_until(lambda: run.progress.batches == 1, run)
    run.stop()
    assert values(sink) == Counter([(12, 21)])
    assert names(run) == ["started", "recovered", "batch", "finished"]
    assert [e["batch"] for e in run.events() if e["event"] in ("recovered", "batch")] == [1, 2]


def test_a_rate_stream_joins_itself_once_per_row_through_stops(spark, tmp_path):
    rows = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    rows = rows.selectExpr("value AS v", "timestamp AS ts")
    text = (
        "SELECT x.v, y.v AS w FROM r [RANGE 0 SECONDS] x, r [RANGE 0 SECONDS] y WHERE x.v = y.v"
    )
    out = tmp_path / "out"
    for workers in (2, 3, 1):
        run = braid.query(text, r=rows, event_time="ts").start(
            checkpoint=tmp_path / "c", sink=braid.sinks.parquet(out), workers=workers
        )
        wait_until(lambda run=run: run.progress.output_rows > 0, run)
        run.stop()
    batches = sorted(int(path.name.removeprefix("__batch=")) for path in out.glob("__batch=*"))
    assert batches == list(range(len(batches)))
    found = [
        row
        for path in out.glob("__batch=*/*.parquet")
        for row in pq.read_table(path).to_pylist()
    ]
    assert sorted(row["v"] for row in found) == list(range(len(found)))
    assert all(row["v"] == row["w"] for row in found)


def test_a_batch_that_comes_while_the_run_is_stopped_does_not_hold_it_up(spark, tmp_path):
    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    rows = rows.selectExpr("value AS v", "timestamp AS ts")
    text = "SELECT x.v FROM r [RANGE 0 SECONDS] x, r [RANGE 0 SECONDS] y WHERE x.v = y.v"
    run = braid.query(text, r=rows, event_time="ts").start(
        checkpoint=tmp_path / "c", sink=braid.sinks.memory(), workers=1
    )
    wait_until(lambda: run.progress.batches > 0, run)
    feed: Any = run._feed

    class SlowToStop:  # so that the next batch is at the door for certain
        def __getattr__(self, name: str) -> Any:
            return getattr(spark_query, name)

        def stop(self) -> None:
            time.sleep(3)
            spark_query.stop()

    spark_query, feed._query = feed._query, SlowToStop()
    stopping = threading.Thread(target=run.stop, daemon=True)
    stopping.start()
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()
    assert names(run)[-1] == "finished"


def test_a_callback_gets_frames_and_numbers(spark, tmp_path, a, b, frames_or_folders):
    a.add((1, 0, 10))
    b.add((2, 0, 20))
    b.add((1, 1, 21))
    taken = []

    def take(frame: DataFrame, batch: int) -> None:
        taken.append((batch, frame.columns, frame.collect()))

    query = braid.query(
        PAIRS, a=a.stream(frames_or_folders), b=b.stream(frames_or_folders), event_time="ts"
    )
    run = query.start(
        checkpoint=tmp_path / "c", sink=braid.sinks.callback(take), available_now=True
    )
    run.await_termination()
    columns = ["k", "va", "vb"]
    assert taken == [(0, columns, []), (1, columns, [(1, 10, 21)])]


def test_an_error_in_a_callback_ends_the_run_and_its_batch_comes_again(
    spark, tmp_path, a, b, frames_or_folders
):
    for n in range(3):
        a.add((1, n, 10 + n))
        b.add((1, n, 20 + n))
    taken: list[tuple[int, int]] = []
    failing = True

    def take(frame: DataFrame, batch: int) -> None:
        if failing and batch == 1:
            raise ValueError("the user's own fault")
        taken.append((batch, frame.count()))

    def start() -> braid.Run:
        streams = {"a": a.stream(frames_or_folders), "b": b.stream(frames_or_folders)}
        return braid.query(PAIRS, **streams, event_time="ts").start(
            checkpoint=tmp_path / "c", sink=braid.sinks.callback(take), available_now=True
        )

    run = start()
    with pytest.raises(ValueError, match="the user's own fault"):
        run.await_termination()
    assert run.events()[-1]["reason"] == "failed"
    with pytest.raises(ValueError, match="the user's own fault"):
        start()  # which begins with the batch that is owed
    failing = False
    start().await_termination()
    assert taken == [(0, 1), (1, 3), (2, 5)]


def test_late_rows_are_counted_and_kept(spark, tmp_path, a, b, frames_or_folders):
    a.add((1, 100, 10))
    b.add((1, 100, 20))
    a.add((1, 94.999, 11), (1, 95, 12), (1, 98, 13))
    b.add((1, 90, 21), (2, 91, 22), (1, 101, 23))
    query = braid.query(
        PAIRS,
        a=a.stream(frames_or_folders),
        b=b.stream(frames_or_folders),
        event_time="ts",
        lateness="5 seconds",
    )
    sink = braid.sinks.memory()
    late = tmp_path / "late"
    run = query.start(checkpoint=tmp_path / "c", sink=sink, late=late, available_now=True)
    run.await_termination()
    assert run.progress.late_rows == 3
    assert values(sink) == Counter([(10, 20), (12, 20), (13, 20), (10, 23), (13, 23)])
    kept = {
        str(path.parent.relative_to(late)): row
        for path in sorted(late.glob("*/*/*.parquet"))
        for row in [pq.ParquetFile(path).read().select(["k", "ts", "v"]).to_pylist()]
    }
    moment = EPOCH + dt.timedelta(seconds=94.999)
    assert kept["__batch=1/stream=a"] == [{"k": 1, "ts": moment, "v": 11}]
    assert {row["v"] for row in kept["__batch=1/stream=b"]} == {21, 22}
    assert kept.keys() == {"__batch=1/stream=a", "__batch=1/stream=b"}


def state_rows_with_one_stream_idle(
    spark: SparkSession, tmp_path: Path, a: Folder, b: Folder, idle_timeout: str | None
) -> tuple[list[int], braid.Run]:
    """State rows after each batch; all but the first batch have rows of `a` alone."""
    a.add((1, 0, 10))
    b.add((1, 0, 20))
    query = braid.query(
        PAIRS,
        a=a.stream(spark),
        b=b.stream(spark),
        event_time="ts",
        idle_timeout=idle_timeout,
    )
    run = query.start(checkpoint=tmp_path / "c", sink=braid.sinks.memory(), workers=2)
    wait_until(lambda: run.progress.batches == 1, run)
    time.sleep(0.6)
    for n in range(1, 7):
        a.add((1, 10 * n, 10 + n))
        wait_until(lambda n=n: run.progress.batches == n + 1, run)
    found = [
        sum(share["state_rows"] for share in event["workers"])
        for event in run.events()
        if event["event"] == "batch"
    ]
    return found, run


def test_an_idle_stream_does_not_hold_state_for_ever(spark, tmp_path, a, b):
    found, run = state_rows_with_one_stream_idle(spark, tmp_path, a, b, "500 milliseconds")
    assert found[-1] <= 3
    assert run.progress.watermark == "2024-01-01T00:01:00.000Z"
    b.add((1, 59, 21), (1, 60, 22))  # back again, with a row that comes too late now
    wait_until(lambda: run.progress.batches == 8, run)
    run.stop()
    assert run.progress.late_rows == 1
    assert run.progress.output_rows == 2


def test_without_a_timeout_a_stream_without_rows_holds_all_state(spark, tmp_path, a, b):
    found, run = state_rows_with_one_stream_idle(spark, tmp_path, a, b, None)
    run.stop()
    assert found == [2, 3, 4, 5, 6, 7, 8]
    assert run.progress.watermark == "2024-01-01T00:00:00.000Z"


def test_two_queries_run_side_by_side_in_one_session(spark, tmp_path, a, b):
    for n in range(4):
        a.add((n, n, 10 + n))
        b.add((n, n, 20 + n))
    runs = []
    for name in ("one", "two"):
        query = braid.query(PAIRS, a=a.stream(spark), b=b.stream(spark), event_time="ts")
        sink = braid.sinks.memory()
        runs.append((query.start(checkpoint=tmp_path / name, sink=sink, workers=2), sink))
    for run, _ in runs:
        wait_until(lambda run=run: run.progress.batches == 4, run)
    runs[0][0].stop()
    a.add((1, 5, 14))
    wait_until(lambda: runs[1][0].progress.batches == 5, runs[1][0])
    runs[1][0].stop()
    pairs = [(10 + n, 20 + n) for n in range(4)]
    assert values(runs[0][1]) == Counter(pairs)
    assert values(runs[1][1]) == Counter([*pairs, (14, 21)])


def test_the_settings_of_the_users_session_stay_as_they_are(
    spark, tmp_path, a, b, frames_or_folders
):
    a.add((1, 0, 10))
    b.add((1, 0, 20))
    ours = {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.shuffle.partitions": "13",
        "spark.sql.adaptive.enabled": "true",
    }
    before = {name: spark.conf.get(name) for name in ours}
    try:
        for name, value in ours.items():
            spark.conf.set(name, value)
        query = braid.query(
            PAIRS, a=a.stream(frames_or_folders), b=b.stream(frames_or_folders), event_time="ts"
        )
        sink = braid.sinks.memory()
        query.start(
            checkpoint=tmp_path / "c", sink=sink, available_now=True
        ).await_termination()
        assert values(sink) == Counter([(10, 20)])
        assert {name: spark.conf.get(name) for name in ours} == ours
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_a_batch_whose_rows_are_all_filtered_out_is_a_batch_like_any_other(
    spark, tmp_path, a, b
):
    a.add((1, 0, 10))
    b.add((1, 0, 20))
    none = b.stream(spark).where("1 = 0")
    query = braid.query(PAIRS, a=a.stream(spark), b=none, event_time="ts")
    sink = braid.sinks.memory()
    run = query.start(checkpoint=tmp_path / "c", sink=sink, workers=2)
    wait_until(lambda: run.progress.batches == 1, run)
    b.add((1, 1, 21))
    wait_until(lambda: run.progress.batches == 2, run)
    a.add((1, 1, 11))
    wait_until(lambda: run.progress.batches == 3, run)
    run.stop()
    assert run.progress.input_rows == 2
    assert run.progress.state_rows == 2
    assert sink.rows() == []


# Queries whose results wait for the watermark, and plans of several rounds.


class Frames:
    """A workload's input as streaming frames: batch n of Spark's has file n of each stream.

    So it is unless Spark is stopped while it looks for files: then it may have noted the next
    one of some streams and not of others. Hence files come before a start.
    """

    def __init__(self, spark: SparkSession, folder: Path, workload: Workload, files: int):
        self.workload, self.folder, self.out = workload, folder, folder / "out"
        self.input = Input(seed=6, batches=files, rows=150)
        schema = "k bigint, j bigint, v bigint, ts timestamp"
        self.sources = {name: Folder(folder / name, schema) for name in STREAMS}
        streams = {name: source.stream(spark) for name, source in self.sources.items()}
        self.query = braid.query(
            workload.query, event_time="ts", lateness=f"{LATENESS_S} seconds", **streams
        )

    def add(self, files: int) -> None:
        """The next files of each stream."""
        for name, source in self.sources.items():
            for _ in range(files):
                source.add_table(self.input.table(name, source.count))

    def start(self, workers: int, **options: Any) -> braid.Run:
        return self.query.start(
            checkpoint=self.folder / "checkpoint",
            sink=braid.sinks.parquet(self.out),
            workers=workers,
            groups=16,
            plan=self.workload.plan,
            **options,
        )

    def published(self) -> Counter[tuple[Any, ...]]:
        paths = self.out.glob("__batch=*/*.parquet")
        return sum((counted(pq.ParquetFile(path).read()) for path in paths), Counter())

    def due(self, batches: int) -> Counter[tuple[Any, ...]]:
        """What is to be seen after so many of Spark's batches.

        If the results wait, a batch without rows shows at once what these have closed.
        """
        shown = batches + self.workload.waits
        expected = self.input.expected(self.workload)
        return sum((expected[number] for number in range(shown)), Counter())


def with_rows(run: braid.Run) -> list[bool]:
    """For each batch, whether it had rows."""
    return [bool(event["input_rows"]) for event in run.events() if event["event"] == "batch"]


@pytest.mark.parametrize("workload", [TREE, FLAT, GROUPS, HISTORY], ids=lambda w: w.name)
def test_frames_are_joined_exactly_and_results_are_shown_at_once_through_stops(
    spark, tmp_path, workload
):
    frames = Frames(spark, tmp_path, workload, files=8)
    batches = ([True, False] if workload.waits else [True]) * 2
    for workers, done in ((2, 2), (3, 4)):
        frames.add(2)
        run = frames.start(workers)
        wait_until(lambda run=run: len(with_rows(run)) == len(batches), run)
        run.stop()
        assert with_rows(run) == batches
        assert frames.published() == frames.due(done)
    frames.add(4)
    frames.start(1, available_now=True).await_termination()
    assert frames.published() == sum(frames.input.expected(workload).values(), Counter())


def test_a_fault_between_rows_and_what_they_close_holds_nothing_up(spark, tmp_path):
    frames = Frames(spark, tmp_path, GROUPS, files=2)
    frames.add(2)
    calls = []

    def failing_at_the_second(cluster: Any) -> Any:
        def prepare(rows: Any, *given: Any) -> Any:
            if rows is None:
                calls.append(given)
                if len(calls) == 2:
                    raise RuntimeError("a fault")
            return cluster.prepare(rows, *given)

        return InPlace(cluster, prepare=prepare)

    frames.query = with_cluster(frames.query, failing_at_the_second)
    run = frames.start(2)
    with pytest.raises(RuntimeError, match="a fault"):
        run.await_termination(PATIENCE_S)
    assert with_rows(run) == [True, False, True]
    run = frames.start(2)
    wait_until(lambda: run.progress.batches == 1, run)
    run.stop()
    assert with_rows(run) == [False]
    assert sum(frames.published().values()) > sum(frames.due(1).values())


def test_rows_from_too_far_ahead_are_refused_counted_and_kept(
    spark, tmp_path, a, b, frames_or_folders
):
    now_s = (dt.datetime.now(dt.UTC) - EPOCH).total_seconds()
    far_s = now_s + 3600 * 24 * 365
    a.add((1, now_s - 9, 10), (1, far_s, 11), (1, now_s + 30, 12))
    b.add((1, now_s - 8, 20), (1, now_s + 31, 21))
    b.add((1, now_s + 29, 22), (1, far_s + 1, 23))
    streams = {name: each.stream(frames_or_folders) for name, each in {"a": a, "b": b}.items()}
    query = braid.query(PAIRS, **streams, event_time="ts", lateness="1 minute")
    sink = braid.sinks.memory()
    run = query.start(
        checkpoint=tmp_path / "c",
        sink=sink,
        late=tmp_path / "late",
        max_ahead="1 hour",
        workers=2,
        available_now=True,
    )
    run.await_termination()
    assert values(sink) == Counter([(10, 20), (12, 21), (12, 22)])
    assert run.progress.ahead_rows == 2
    assert run.progress.late_rows == 0, "no row is late for the sake of one from far ahead"
    kept = {
        name: [
            v
            for path in (tmp_path / "late").glob(f"*/stream={name}/*.parquet")
            for v in pq.read_table(path)["v"].to_pylist()
        ]
        for name in "ab"
    }
    assert kept == {"a": [11], "b": [23]}
    clocks = Commit.from_json(read_sealed(next((tmp_path / "c" / "commits").iterdir())))
    assert clocks.clock_us is not None
    assert abs(clocks.clock_us / 1e6 - dt.datetime.now().timestamp()) < PATIENCE_S


def test_a_run_that_follows_reads_new_files_until_it_is_stopped(spark, tmp_path, a, b):
    text = (
        "SELECT count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS], b [RANGE 10 SECONDS] "
        "WHERE a.k = b.k GROUP BY a.k"
    )
    for each in (a, b):
        each.add((1, 0, 0))
    query = braid.query(text, a=braid.files(a.path), b=braid.files(b.path), event_time="ts")
    sink = braid.sinks.memory()
    run = query.start(checkpoint=tmp_path / "c", sink=sink, workers=1, follow=True)
    wait_until(lambda: run.progress.input_rows == 2, run)
    half = a.path / "001.parquet"
    half.write_bytes((a.path / "000.parquet").read_bytes()[:-4])
    for each in (a, b):
        each.count = 2
        each.add((1, 10, 0))
    wait_until(lambda: "awaited" in names(run), run)
    (told,) = (event for event in run.events() if event["event"] == "awaited")
    assert (told["stream"], told["file"]) == ("a", "001.parquet")
    assert run.progress.input_rows == 3, "the file behind the half-written one waits"
    a.count = 1
    a.add((1, 1, 0))
    wait_until(lambda: run.progress.input_rows == 5, run)
    wait_until(lambda: bool(sink.rows()), run)
    assert [row["n"] for row in sink.rows()] == [1]
    wait_until(lambda: run.is_waiting, run)
    run.stop()
    assert not run.is_waiting
    assert run.events()[-1]["reason"] == "stopped"
    assert [row["n"] for row in sink.rows()] == [1], "a stop closes no window"
    for each in (a, b):
        each.count = 3
        each.add((1, 10, 1))
    rest = braid.sinks.memory()
    query.start(checkpoint=tmp_path / "c", sink=rest, workers=1).await_termination()
    assert [row["n"] for row in rest.rows()] == [4 * 3]


@pytest.mark.parametrize("available_now", [False, True])
def test_batches_begin_at_most_once_in_an_interval(
    spark, tmp_path, a, b, frames_or_folders, available_now
):
    for second in range(3):
        a.add((1, second, second))
        b.add((1, second, second))
    streams = {name: each.stream(frames_or_folders) for name, each in {"a": a, "b": b}.items()}
    query = braid.query(PAIRS, **streams, event_time="ts")
    run = query.start(
        checkpoint=tmp_path / "c",
        sink=braid.sinks.memory(),
        workers=1,
        interval="3 seconds",
        available_now=available_now,
    )
    if available_now or frames_or_folders is None:
        run.await_termination()
    else:
        wait_until(lambda: run.progress.input_rows == 6, run)
        run.stop()
    with_rows = [e for e in run.events() if e["event"] == "batch" and e["input_rows"]]
    ended = [dt.datetime.fromisoformat(e["at"]).timestamp() for e in with_rows]
    began = [at - e["elapsed_ms"] / 1000 for at, e in zip(ended, with_rows, strict=True)]
    assert len(began) == 3
    assert all(later - sooner > 2.7 for sooner, later in pairwise(began))


def test_a_failure_in_the_background_is_told_at_once(spark, tmp_path, a, b, frames_or_folders):
    a.add((1, 0, 10))
    b.add((1, 1, 20))

    def refuse(results: Any, batch: int) -> None:
        raise RuntimeError("the table is locked")

    streams = {name: each.stream(frames_or_folders) for name, each in {"a": a, "b": b}.items()}
    query = braid.query(PAIRS, **streams, event_time="ts")
    run = query.start(checkpoint=tmp_path / "c", sink=braid.sinks.callback(refuse), workers=1)
    began = time.monotonic()
    while run.is_active:  # nobody awaits the end
        assert time.monotonic() < began + PATIENCE_S
        time.sleep(0.05)
    told = run.events()
    assert [event["event"] for event in told][-2:] == ["failed", "finished"]
    assert "the table is locked" in told[-2]["reason"]
    assert "the table is locked" in str(run.exception)
    assert "the table is locked" in run.status["message"]
    with pytest.raises(Exception, match="the table is locked"):
        run.await_termination()


def test_a_listener_that_raises_ends_the_run_and_holds_nothing(
    spark, tmp_path, a, b, frames_or_folders
):
    a.add((1, 0, 10))
    b.add((1, 1, 20))
    streams = {name: each.stream(frames_or_folders) for name, each in {"a": a, "b": b}.items()}
    query = braid.query(PAIRS, **streams, event_time="ts")
    heard: list[str] = []

    def refuse(event: Any) -> None:
        heard.append(event.name)
        raise ValueError("nobody listens")

    def start() -> braid.Run:
        sink = braid.sinks.memory()
        return query.start(checkpoint=tmp_path / "c", sink=sink, available_now=True, workers=1)

    run = start()
    run.listen(refuse)
    with pytest.raises(ValueError, match="nobody listens"):
        run.await_termination()
    assert heard[-2:] == ["failed", "finished"]
    assert run.status["message"] == "failed: nobody listens"
    identity = read_sealed(tmp_path / "c" / "braid.json")["id"]
    assert not list(memory_root().glob(f"braid-{identity}-*"))
    assert start().await_termination()

    a.add((1, 2, 11))
    run = start()
    run.listen(lambda event: refuse(event) if event.name == "finished" else None)
    with pytest.raises(ValueError, match="nobody listens"):
        run.await_termination()
    assert start().await_termination()


def test_a_run_is_over_only_when_its_checkpoint_is_free(
    spark, tmp_path, a, b, frames_or_folders
):
    a.add((1, 0, 10))
    b.add((1, 1, 20))
    streams = {name: each.stream(frames_or_folders) for name, each in {"a": a, "b": b}.items()}
    query = braid.query(PAIRS, **streams, event_time="ts")
    meanwhile = []

    def closing_slowly(cluster: Any) -> Any:
        def close() -> None:
            time.sleep(1)
            meanwhile.append((run.is_active, run.exception, run.status["message"]))
            cluster.close()

        return InPlace(cluster, close=close)

    def refuse(results: Any, batch: int) -> None:
        raise RuntimeError("the table is locked")

    run = with_cluster(query, closing_slowly).start(
        checkpoint=tmp_path / "c", sink=braid.sinks.callback(refuse), workers=1
    )
    began = time.monotonic()
    while run.is_active:
        assert time.monotonic() < began + PATIENCE_S
        time.sleep(0.001)
    assert meanwhile == [(True, None, "running")]
    assert [event["event"] for event in run.events()][-2:] == ["failed", "finished"]
    assert "the table is locked" in str(run.exception)
    with pytest.raises(Exception, match="the table is locked"):  # the batch that is owed
        query.start(checkpoint=tmp_path / "c", sink=braid.sinks.callback(refuse), workers=1)


@pytest.mark.parametrize("at_end", [False, True])
def test_a_callback_that_exits_fails_the_run(spark, tmp_path, a, b, at_end, frames_or_folders):
    text = (
        "SELECT a.k, a.v AS va, b.v AS vb "
        "FROM a [PARTITION BY k ROWS 1], b [RANGE 10 SECONDS] WHERE a.k = b.k"
    )
    a.add((1, 0, 10))
    b.add((1, 1, 20))
    streams = {name: each.stream(frames_or_folders) for name, each in {"a": a, "b": b}.items()}
    calls: list[int] = []

    def leave(results: Any, batch: int) -> None:
        calls.append(batch)
        if bool(results.count()) == at_end:  # all results come with the end of the input
            raise SystemExit(3)

    query = braid.query(text, **streams, event_time="ts")
    run = query.start(
        checkpoint=tmp_path / "c",
        sink=braid.sinks.callback(leave),
        workers=1,
        available_now=True,
    )
    with pytest.raises(BraidError, match=r"the run was ended by SystemExit\(3\)"):
        run.await_termination(PATIENCE_S)
    with pytest.raises(BraidError, match="SystemExit"):
        run.await_termination(PATIENCE_S)
    assert calls == list(range(len(calls))), "the batch is not shown once more meanwhile"
    assert "SystemExit(3)" in run.status["message"]
    assert isinstance(run.exception, BraidError)
    assert [event["event"] for event in run.events()][-2:] == ["failed", "finished"]


@pytest.mark.parametrize("available_now", [False, True])
def test_a_stop_of_sparks_query_from_outside_is_not_the_end_of_the_input(
    spark, tmp_path, a, b, available_now
):
    text = (
        "SELECT count(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS], b [RANGE 10 SECONDS] "
        "WHERE a.k = b.k GROUP BY a.k"
    )
    for each in (a, b):
        each.add((1, 0, 0), (1, 10, 0))
    streams = {"a": a.stream(spark), "b": b.stream(spark)}
    query = braid.query(text, **streams, event_time="ts")
    first, rest = braid.sinks.memory(), braid.sinks.memory()
    run = query.start(
        checkpoint=tmp_path / "c", sink=first, workers=1, available_now=available_now
    )
    if available_now:  # in the middle of its only batch
        (stream,) = spark.streams.active
    else:
        wait_until(lambda: run.progress.input_rows == 4, run)
        (stream,) = spark.streams.active
    stream.stop()
    assert run.await_termination()
    assert run.exception is None
    assert run.events()[-1]["reason"] == "stopped"
    for each in (a, b):
        each.add((1, 10, 1))
    run = query.start(checkpoint=tmp_path / "c", sink=rest, workers=1, available_now=True)
    run.await_termination()
    assert run.events()[-1]["reason"] == "input used up"
    assert run.progress.late_rows == 0
    shown = [row["n"] for row in [*first.rows(), *rest.rows()]]
    assert shown == [1, 9], "the second moment was not closed before its last row came"


def test_stopping_a_run_leaves_the_levels_of_logging_as_they_were(spark, tmp_path, a, b):
    a.add((1, 0, 10))
    b.add((1, 1, 20))
    loggers = spark._jvm.org.apache.logging.log4j.LogManager.getContext(False)
    name = "org.apache.spark.sql.execution.streaming"
    query = braid.query(PAIRS, a=a.stream(spark), b=b.stream(spark), event_time="ts")
    run = query.start(checkpoint=tmp_path / "c", sink=braid.sinks.memory(), workers=1)
    wait_until(lambda: run.progress.input_rows == 2, run)
    run.stop()
    assert loggers.getConfiguration().getLoggers().get(name) is None


def test_a_logger_of_ones_own_stays_though_it_has_no_level(spark: SparkSession) -> None:
    log4j: Any = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    loggers = log4j.LogManager.getContext(False)
    name = "org.apache.spark.sql.execution.streaming"
    own = log4j.core.config.LoggerConfig(name, None, True)
    loggers.getConfiguration().addLogger(name, own)
    try:
        with unlogged_end(spark):
            assert own.getLevel().toString() == "OFF"
        assert loggers.getConfiguration().getLoggers().get(name).equals(own)
        assert own.getExplicitLevel() is None
    finally:
        loggers.getConfiguration().removeLogger(name)
        loggers.updateLoggers()


def test_files_that_have_been_read_may_be_removed_in_mid_run(
    spark: SparkSession, tmp_path: Path, a: Folder, b: Folder
) -> None:
    for second in range(6):
        a.add((1, second, second))
        b.add((1, second, second))
    sink = braid.sinks.memory()
    run = braid.query(
        PAIRS, event_time="ts", a=braid.files(a.path), b=braid.files(b.path)
    ).start(checkpoint=tmp_path / "c", sink=sink, workers=2)

    def remove_first(event: Event) -> None:
        if event.name == "batch":
            for folder in (a, b):
                min(folder.path.iterdir()).unlink(missing_ok=True)

    run.listen(remove_first)
    run.await_termination()
    assert values(sink).total() == 36
