"""Times with and without a time zone in one query mean what they mean to Spark itself."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model.errors import BraidError, QueryError
from tests.spark.folders import stream_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from braid.front.query import ContinuousQuery

pytestmark = pytest.mark.spark

NTZ, TIME = pa.timestamp("us"), pa.timestamp("us", "UTC")
BERLIN = "Europe/Berlin"
CHANGES = {
    # By zone: local times at which the clocks go forward, and at which they go back.
    "UTC": ("2024-03-31 02:00", "2024-10-27 02:00"),
    BERLIN: ("2024-03-31 02:00", "2024-10-27 02:00"),
    "America/New_York": ("2024-03-10 02:00", "2024-11-03 01:00"),
    "Asia/Kolkata": ("2024-03-31 02:00", "2024-10-27 02:00"),
    "Australia/Lord_Howe": ("2024-10-06 02:00", "2024-04-07 01:30"),
}
MINUTES = {"o": 45, "p": 45, "q": 90}
SELECT = (
    "SELECT o.v AS a, p.v AS b, q.v AS c, o.at AS oat, p.at AS pat, {later} AS later, "
    "greatest(o.at, p.at) AS newest, CASE WHEN q.at > o.at THEN q.at END AS walls"
)
LATER_US = "(unix_micros(p.at) - unix_micros(CAST(o.at AS TIMESTAMP)))"
"""The time that passed from o to p. Spark's own minus would subtract what clocks show."""

CONDITIONS = [
    "p.at >= o.at AND {later} < INTERVAL 40 MINUTES",
    "o.at <= q.at AND p.at < q.at + INTERVAL 70 MINUTES",
    "coalesce(p.at, o.at) >= o.day AND q.at < p.at",
]


def in_zone(spark: SparkSession, zone: str) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    return session


def write_streams(folder: Path, zone: str) -> None:
    """Walls on both sides of every change of the clocks, and the instants of all of them."""
    changes = [dt.datetime.fromisoformat(text) for text in CHANGES[zone]]
    walls = [at + dt.timedelta(minutes=13 * n) for at in changes for n in range(-8, 9)]
    instants = [
        wall.replace(tzinfo=ZoneInfo(zone), fold=number % 2).astimezone(dt.UTC)
        for number, wall in enumerate(walls)
    ]
    columns = {"k": [1] * len(walls), "v": range(len(walls))}
    days = pa.array([wall.date() for wall in walls])
    tables = {
        "o": pa.table({**columns, "at": pa.array(walls, NTZ), "day": days}),
        "p": pa.table({**columns, "at": pa.array(instants, TIME)}),
        "q": pa.table({**columns, "at": pa.array(walls, NTZ)}),
    }
    for name, table in tables.items():
        (folder / name).mkdir()
        half = table.num_rows // 2
        pq.write_table(table.slice(0, half), folder / name / "0.parquet")
        pq.write_table(table.slice(half), folder / name / "1.parquet")


def bound(session: SparkSession, folder: Path, condition: str) -> ContinuousQuery:
    windows = ", ".join(f"{name} [RANGE {MINUTES[name]} MINUTES]" for name in "opq")
    text = f"{SELECT} FROM {windows} WHERE o.k = p.k AND o.k = q.k AND {condition}"
    text = text.format(later="p.at - o.at")
    schemas = {name: session.read.parquet(str(folder / name)).schema for name in "opq"}
    streams = {name: stream_of(folder / name, session, schemas[name]) for name in "opq"}
    return braid.query(text, event_time="at", lateness="3650 days", **streams)


def answer(session: SparkSession, folder: Path, condition: str) -> pa.Table:
    """Spark's own join, in which the windows are conditions on instants."""
    for name in "opq":
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    instants = {name: f"unix_micros(CAST({name}.at AS TIMESTAMP))" for name in "opq"}
    newest = f"greatest({', '.join(instants.values())})"
    windows = " AND ".join(
        f"{newest} - {instants[name]} <= {MINUTES[name] * 60_000_000}" for name in "opq"
    )
    where = f"o.k = p.k AND o.k = q.k AND {condition} AND {windows}"
    later = f"make_dt_interval(0, 0, 0, {LATER_US} / 1000000)"
    return session.sql(f"{SELECT} FROM o, p, q WHERE {where}".format(later=later)).toArrow()


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("us", "UTC" if kind.tz else None))
        columns.append(column.to_pylist())
    return Counter(zip(*columns, strict=True))


@pytest.mark.parametrize("zone", CHANGES)
def test_wall_clocks_and_instants_are_compared_in_the_zone_of_the_session(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    session = in_zone(spark, zone)
    write_streams(tmp_path, zone)
    for number, condition in enumerate(CONDITIONS):
        sink = braid.sinks.memory()
        query = bound(session, tmp_path, condition)
        run = query.start(
            checkpoint=tmp_path / f"{number}", sink=sink, workers=2, available_now=True
        )
        run.await_termination()
        assert run.progress.late_rows == 0
        expected = counted(answer(session, tmp_path, condition))
        assert expected
        assert counted(sink.table()) == expected


def test_a_run_goes_on_in_its_own_time_zone_alone(spark: SparkSession, tmp_path: Path) -> None:
    write_streams(tmp_path, BERLIN)
    checkpoint, sink = tmp_path / "checkpoint", braid.sinks.memory()
    first = bound(in_zone(spark, BERLIN), tmp_path, CONDITIONS[0])
    first.start(checkpoint=checkpoint, sink=sink, available_now=True).await_termination()
    other = bound(in_zone(spark, "Asia/Kolkata"), tmp_path, CONDITIONS[0])
    with pytest.raises(BraidError, match="in Asia/Kolkata") as refused:
        other.start(checkpoint=checkpoint, sink=sink)
    assert f"in {BERLIN}" in str(refused.value)


@pytest.mark.parametrize(
    "select",
    [
        "p.at - o.wall AS age",
        "p.at - CAST(o.wall AS TIMESTAMP) AS age",
        "p.at - CAST(o.wall AS TIMESTAMP_LTZ) AS age",
        "o.v",
    ],
)
def test_a_wall_clock_beside_an_instant_means_one_thing_for_a_checkpoint(
    spark: SparkSession, tmp_path: Path, select: str
) -> None:
    moment = dt.datetime(2024, 1, 1)
    times = {"at": pa.array([moment], TIME), "wall": pa.array([moment], NTZ)}
    for name in "op":
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"k": [1], "v": [1], **times}), tmp_path / name / "0.parquet")

    def start(zone: str) -> braid.Run:
        session = in_zone(spark, zone)
        schema = "k bigint, v bigint, at timestamp, wall timestamp_ntz"
        streams = {name: stream_of(tmp_path / name, session, schema) for name in "op"}
        windows = "o [RANGE 1 MINUTE], p [RANGE 1 MINUTE]"
        text = f"SELECT {select} FROM {windows} WHERE o.k = p.k"
        query = braid.query(text, event_time="at", **streams)
        sink = braid.sinks.memory()
        return query.start(checkpoint=tmp_path / "c", sink=sink, workers=1, available_now=True)

    start(BERLIN).await_termination()
    if select == "o.v":
        start("Asia/Kolkata").await_termination()
        return
    with pytest.raises(BraidError, match="made with another time zone") as refused:
        start("Asia/Kolkata")
    assert BERLIN in str(refused.value)
    start(BERLIN).await_termination()


def test_a_key_without_a_zone_and_one_with_a_zone_need_a_cast(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_streams(tmp_path, BERLIN)
    with pytest.raises(QueryError, match="timestamp") as refused:
        bound(in_zone(spark, BERLIN), tmp_path, "o.at = p.at")
    assert "CAST" in str(refused.value)
    condition = "CAST(o.at AS TIMESTAMP) = p.at"
    session, sink = in_zone(spark, BERLIN), braid.sinks.memory()
    run = bound(session, tmp_path, condition).start(
        checkpoint=tmp_path / "checkpoint", sink=sink, available_now=True
    )
    run.await_termination()
    assert counted(sink.table()) == counted(answer(session, tmp_path, condition))
