"""Event times under different names, and such that have to be computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model.errors import BraidError
from tests.spark.commands import assert_refused, many_commands

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SECOND = 1_000_000
JOINED = [(a, b) for a in range(30) for b in range(30) if a % 3 == b % 3 and 0 <= b - a <= 7]


def write_streams(folder: Path) -> dict[str, Path]:
    """Rows whose numbers are the seconds of their times, in forms of their own."""
    rows = {"k": [n % 3 for n in range(30)], "v": range(30)}
    moments = pa.array([n * SECOND for n in range(30)]).view(pa.timestamp("us", "UTC"))
    texts = [f"1970-01-01 00:00:{n:02}" for n in range(30)]
    tables = {
        "o": pa.table({**rows, "ms": [n * 1000 for n in range(30)], "ordered at": moments}),
        "p": pa.table({**rows, "event_time": texts, "paid_at": moments}),
    }
    for name, table in tables.items():
        (folder / name).mkdir()
        for number in range(3):
            pq.write_table(table.slice(10 * number, 10), folder / name / f"{number}.parquet")
    return {name: folder / name for name in tables}


def text_of(later: str) -> str:
    return (
        "SELECT o.v AS a, p.v AS b FROM o [RANGE 10 SECONDS], p [RANGE 10 SECONDS] "
        f"WHERE o.k = p.k AND {later} BETWEEN INTERVAL 0 SECONDS AND INTERVAL 7 SECONDS"
    )


@pytest.mark.parametrize(
    ("event_time", "later"),
    [
        ({"o": "ordered at", "p": "paid_at"}, "p.paid_at - o.`ordered at`"),
        ({"o": "timestamp_millis(ms)", "p": "paid_at"}, "p.paid_at - o.event_time_2"),
        (
            {"o": "timestamp_millis(o.ms)", "p": "to_timestamp(event_time)"},
            "p.event_time_2 - o.event_time_2",
        ),
        (
            {"o": "to_timestamp_ntz(`ordered at`)", "p": "to_timestamp_ntz(event_time)"},
            "p.event_time_2 - o.event_time_2",
        ),
        (
            {"o": "`ordered at`", "p": "to_timestamp_ntz(event_time)"},
            "p.event_time_2 - o.event_time_2",
        ),
    ],
)
def test_every_stream_has_an_event_time_of_its_own(
    spark: SparkSession, tmp_path: Path, event_time: Mapping[str, str], later: str
) -> None:
    folders = {name: braid.files(path) for name, path in write_streams(tmp_path).items()}
    sink = braid.sinks.memory()
    query = braid.query(text_of(later), event_time=event_time, lateness="1 hour", **folders)
    assert len(query.query.bounds) == 2  # they are known for conditions on times
    checkpoint = tmp_path / "checkpoint"
    query.start(checkpoint=checkpoint, sink=sink, workers=2).await_termination()
    assert sorted((row["a"], row["b"]) for row in sink.rows()) == JOINED
    if "event_time" in event_time["p"]:
        other = dict(event_time, p="to_timestamp(event_time, 'yyyy-MM-dd HH:mm:ss')")
        again = braid.query(text_of(later), event_time=other, lateness="1 hour", **folders)
        assert again.query.text == query.query.text
        with pytest.raises(BraidError, match="made with another set of columns"):
            again.start(checkpoint=checkpoint, sink=sink)


@pytest.mark.parametrize(
    ("event_time", "words"),
    [
        ({"o": "ordered at"}, ["stream 'p'", "add it"]),
        ({"o": "ordered at", "x": "ts"}, ["unknown stream in event_time: 'x'", "known: o, p"]),
        ("v", ["'v' of stream 'o' is int64, not a timestamp", "timestamp_millis(v)"]),
        ("ms + 1", ["'ms + 1' of stream 'o' is int64, not a timestamp", "timestamp_millis"]),
        ("timestamp_milis(v)", ["unknown function 'timestamp_milis'", "timestamp_millis"]),
        ("timestamp_millis(w)", ["unknown column 'w'", "'timestamp_millis(w)' of stream 'o'"]),
        ("current_timestamp()", ["evaluated again", "current_timestamp"]),
        ("max(v)", ["an aggregate cannot stand in an event time", "'max(v)'"]),
    ],
)
def test_an_event_time_that_cannot_be_is_refused(
    spark: SparkSession, tmp_path: Path, event_time: Any, words: list[str]
) -> None:
    folders = {name: braid.files(path) for name, path in write_streams(tmp_path).items()}
    with pytest.raises(BraidError) as refused:
        braid.query(text_of("p.paid_at - o.`ordered at`"), event_time=event_time, **folders)
    assert all(word in str(refused.value) for word in words), str(refused.value)
    assert refused.value.hint


def test_the_shell_takes_event_times_by_stream_and_for_all(tmp_path: Path) -> None:
    streams = [f"--stream={name}={path}" for name, path in write_streams(tmp_path).items()]
    places = ["--out", tmp_path / "out", "--checkpoint", tmp_path / "checkpoint"]
    text = text_of("p.paid_at - o.event_time_2")
    times = ["--event-time", "o=timestamp_millis(ms)", "--event-time", "paid_at"]
    with many_commands() as command:
        told = command("explain", "-q", text, *streams, *times)
        assert told.code == 0, told
        unknown = command("explain", "-q", text, *streams, "--event-time", "x=ts")
        assert_refused(unknown, "unknown stream in --event-time: 'x'", "o, p")
        told = command("run", "-q", text, *streams, *places, *times, "--lateness", "1 hour")
        assert told.code == 0, told
    assert f"{len(JOINED)} results" in told.out
