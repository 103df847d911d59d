"""Rows too far ahead of the clock: each is decided about once, by the clock of its batch."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.engine.cluster import TryAgain
from braid.front.query import ask
from braid.record.checkpoint import read_sealed
from braid.record.commit import Commit
from braid.spark.clock import wall_clock
from braid.spark.sources import SparkSources
from tests.oracle.values import EPOCH
from tests.spark.faulty import InPlace, with_cluster, with_sources
from tests.spark.test_streaming import Folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from braid.spark.sources import Stream

pytestmark = pytest.mark.spark

NTZ = pa.timestamp("us")
EPOCH_US = int(EPOCH.timestamp() * 1e6)
HOUR_S = 3600
FAR_S = 1.5 * HOUR_S  # which is too far ahead at first, and no more two hours later

PAIRS = "SELECT a.v, b.v AS w FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k"
GROUPS = (
    "SELECT sum(a.v + b.v) AS s FROM a [RANGE 5 SECONDS SLIDE 5 SECONDS], b [RANGE 5 SECONDS] "
    "WHERE a.k = b.k GROUP BY a.k"
)
ROUNDS = (
    "SELECT a.v, c.v AS w FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS], c [RANGE 5 SECONDS] "
    "WHERE a.k = b.k AND b.v = c.k"
)
ROWS = {
    "a": [(1, 0, 10), (1, FAR_S, 11)],
    "b": [(1, 0, 20), (1, FAR_S, 21)],
    "c": [(20, 0, 30), (21, FAR_S, 31)],
}
RESULTS = {
    # By query: without the rows that are far ahead, and with them.
    PAIRS: ([(10, 20)], [(10, 20), (11, 21)]),
    GROUPS: ([(30,)], [(30,), (30,), (32,)]),
    ROUNDS: ([(10, 30)], [(10, 30), (11, 31)]),
}


class Clock:
    """A clock for the driver that shows what a test says."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_us(self) -> int:
        return EPOCH_US + int(self.seconds * 1e6)


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Place:
    """Streams with one row that is far ahead each, and what a query made of them."""

    def __init__(
        self, folder: Path, text: str, clock: Clock, spark: SparkSession | None = None
    ) -> None:
        self.folder = folder
        self.text = text
        self.clock = clock
        self.wrap: Callable[[Any], Any] = lambda cluster: cluster
        self.names = [name for name in ROWS if f" {name} [" in text]
        self.files = {name: Folder(folder / name) for name in self.names}
        self.streams: dict[str, Stream] = {}
        for name, files in self.files.items():
            files.add(*ROWS[name])
            self.streams[name] = files.stream(spark)

    def start(self, sink: Any = None) -> braid.Run:
        query = braid.query(self.text, self.streams, event_time="ts")
        query = with_sources(with_cluster(query, self.wrap), now_us=self.clock.now_us)
        return query.start(
            checkpoint=self.folder / "checkpoint",
            sink=sink or braid.sinks.parquet(self.folder / "out"),
            late=self.folder / "late",
            max_ahead="1 hour",
            workers=2,
            available_now=True,
        )

    def shows(self, *, far: bool) -> bool:
        """Whether each row is in the results or among those that are kept, once."""
        results = Counter(
            tuple(value for name, value in row.items() if name != "window_end")
            for path in self.folder.glob("out/__batch=*/*.parquet")
            for row in pq.read_table(path, partitioning=None).to_pylist()
        )
        kept = Counter(
            row["v"]
            for path in self.folder.glob("late/**/*.parquet")
            for row in pq.read_table(path, partitioning=None).to_pylist()
        )
        refused = () if far else (ROWS[name][1][2] for name in self.names)
        return results == Counter(RESULTS[self.text][far]) and kept == Counter(refused)

    def clock_us(self) -> int | None:
        (record,) = (self.folder / "checkpoint" / "commits").iterdir()
        return Commit.from_json(read_sealed(record)).clock_us


@pytest.fixture(params=["frames", "folders"])
def frames_or_folders(request: pytest.FixtureRequest, spark: SparkSession) -> Any:
    return spark if request.param == "frames" else None


@pytest.mark.parametrize("text", RESULTS, ids=["pairs", "groups", "rounds"])
def test_a_batch_that_is_tried_again_goes_by_its_first_clock(
    spark, tmp_path, clock, frames_or_folders, text
):
    place = Place(tmp_path, text, clock, frames_or_folders)
    failed: list[int] = []

    def failing_once(cluster: Any) -> Any:
        def run(job: Any, orders: Any) -> Any:
            done = cluster.run(job, orders)
            if not failed and any(report.input_rows for report in done.result().reports):
                failed.append(orders.commit.batch)
                clock.seconds += 2 * HOUR_S
                raise TryAgain("a fault")
            if failed:
                clock.seconds = 0
            return done

        return InPlace(cluster, run=run)

    place.wrap = failing_once
    run = place.start()
    run.await_termination()
    assert [e["event"] for e in run.events()].count("retried") == 1
    assert run.progress.ahead_rows == len(place.names)
    assert place.shows(far=False)
    assert place.clock_us() == EPOCH_US


@pytest.mark.parametrize("step", ["batch evaluated", "commit written", "results published"])
@pytest.mark.parametrize("text", RESULTS, ids=["pairs", "groups", "rounds"])
def test_a_batch_that_was_committed_is_decided_about_and_another_is_not(
    spark, tmp_path, clock, frames_or_folders, text, step
):
    place = Place(tmp_path, text, clock, frames_or_folders)

    def die(*_: Any) -> None:
        raise RuntimeError("killed")

    def die_when_evaluated(cluster: Any) -> Any:
        def run(job: Any, orders: Any) -> Any:
            cluster.run(job, orders).result()
            die()

        return InPlace(cluster, run=run)

    own = braid.sinks.parquet(tmp_path / "out")

    def publish_and_die(*given: Any) -> None:
        own.publish(*given)
        die()

    if step == "batch evaluated":
        place.wrap = die_when_evaluated
    publish = {"commit written": die, "results published": publish_and_die}.get(step)
    run = place.start(InPlace(own, publish=publish) if publish else own)
    with pytest.raises(RuntimeError, match="killed"):
        run.await_termination()
    place.wrap = lambda cluster: cluster
    clock.seconds = 2 * HOUR_S
    run = place.start()
    run.await_termination()
    assert place.shows(far=step == "batch evaluated")
    assert run.progress.ahead_rows == 0, "no row is decided about twice"


def add_walls(files: Folder, now: dt.datetime, *minutes_and_values: tuple[float, int]) -> None:
    minutes, values = zip(*minutes_and_values, strict=True)
    walls = [now + dt.timedelta(minutes=m) for m in minutes]
    files.add_table(pa.table({"k": [1] * len(walls), "ts": pa.array(walls, NTZ), "v": values}))


@pytest.mark.parametrize(
    ("zone", "known_as"),
    [
        ("Asia/Kolkata", "Asia/Kolkata"),
        ("America/New_York", "America/New_York"),
        ("+05:30", "Asia/Kolkata"),
        ("UTC+3", "Africa/Nairobi"),
    ],
)
def test_times_without_a_zone_are_compared_with_a_clock_in_the_sessions(
    spark, tmp_path, frames_or_folders, zone, known_as
):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    now = dt.datetime.now(ZoneInfo(known_as)).replace(tzinfo=None)
    schema = "k bigint, ts timestamp_ntz, v bigint"
    folders = {name: Folder(tmp_path / name, schema) for name in "ab"}
    for files in folders.values():
        add_walls(files, now, (-0.3, 1), (55, 2), (65, 3))
    by = None if frames_or_folders is None else session
    streams = {name: files.stream(by) for name, files in folders.items()}
    # Folders are read in a session with the settings that Spark was started with.
    asked = ask(PAIRS, streams, event_time="ts", lateness="0 seconds", idle_timeout=None)
    asked = replace(asked, open=partial(SparkSources.open, streams, session, "ts"))
    sink = braid.sinks.memory()
    run = asked.bound().start(
        checkpoint=tmp_path / "c",
        sink=sink,
        max_ahead="1 hour",
        workers=1,
        available_now=True,
    )
    run.await_termination()
    assert Counter((row["v"], row["w"]) for row in sink.rows()) == Counter([(1, 1), (2, 2)])
    assert run.progress.ahead_rows == 2


@pytest.mark.parametrize(
    ("zone", "moment", "shown"),
    [
        ("Europe/Berlin", "2024-10-27 00:59:59", "2024-10-27 02:59:59"),
        ("Europe/Berlin", "2024-10-27 01:20:00", "2024-10-27 03:00:00"),  # and on the wall 2:20
        ("Europe/Berlin", "2024-10-27 02:00:01", "2024-10-27 03:00:01"),
        ("Europe/Berlin", "2024-03-31 01:00:01", "2024-03-31 03:00:01"),
        ("Australia/Lord_Howe", "2024-04-06 15:10:00", "2024-04-07 02:00:00"),
        ("Australia/Lord_Howe", "2024-04-06 15:40:00", "2024-04-07 02:10:00"),
        ("-02:30", "2024-01-01 00:00:00", "2023-12-31 21:30:00"),
    ],
)
def test_a_clock_that_is_put_back_has_shown_what_rows_may_have(spark, zone, moment, shown):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    moment_us, shown_us = (
        int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp()) * 1_000_000
        for text in (moment, shown)
    )
    assert wall_clock(session)(moment_us) == shown_us


def clocks(run: braid.Run) -> list[dict[str, Any]]:
    return [event for event in run.events() if event["event"] == "clock"]


@pytest.mark.parametrize("wrong_s", [75 * 365 * 24 * HOUR_S, HOUR_S + 1])
def test_a_clock_that_was_wrong_once_is_not_gone_by(spark, tmp_path, clock, wrong_s):
    place = Place(tmp_path, PAIRS, clock)
    later = {name: tmp_path / name / "000.parquet" for name in place.names}
    for name, path in later.items():
        path.rename(tmp_path / f"{name}.later")
        place.files[name].count = 0
        place.files[name].add((1, -60, 0))
    clock.seconds = wrong_s
    first = place.start()
    first.await_termination()
    assert not clocks(first)
    clock.seconds = 0
    for name, path in later.items():
        (tmp_path / f"{name}.later").rename(path.with_name("001.parquet"))
    run = place.start()
    run.await_termination()
    (told,) = clocks(run)
    assert told["now"] == "2024-01-01T00:00:00.000Z"
    assert told["before"] > told["now"]
    assert run.progress.ahead_rows == 2
    assert place.clock_us() == EPOCH_US


def test_a_clock_that_is_put_back_a_little_does_not_go_back(spark, tmp_path, clock):
    place = Place(tmp_path, PAIRS, clock)
    clock.seconds = 60
    place.start().await_termination()
    clock.seconds = 0
    for name in place.names:
        place.files[name].add((1, 60 + HOUR_S, 12))
    run = place.start()
    run.await_termination()
    assert not clocks(run)
    assert run.progress.ahead_rows == 0, "an earlier batch would have taken it"
    assert place.clock_us() == EPOCH_US + 60_000_000
