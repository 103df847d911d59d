"""Rows that an expression fails for end a run, or are kept apart and hold up nothing."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model.errors import BraidError
from tests.oracle.values import EPOCH, TIME
from tests.spark.folders import date, stream_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERY = """\
SELECT a.v AS va, b.v AS vb, CAST(a.s AS INT) + 1 AS more
FROM a [RANGE 100 SECONDS], b [RANGE 100 SECONDS]
WHERE CAST(a.s AS INT) = b.k AND 12 / a.d > 1 AND CAST(b.w AS INT) >= 0"""
A = "s string, d int, v bigint, ts timestamp, unused string"
B = "k int, w string, v bigint, ts timestamp"
ROWS_A = [
    ("1", 2, 10),
    ("one", 2, 11),  # cannot be cast
    (None, 2, 12),  # a null key is no bad row
    ("2", 0, 13),  # 12 / 0
    ("two", 100, 14),  # the condition does not hold, so nobody asks for the rest
    ("2", 3, 15),
]
ROWS_B = [(1, "5", 20), (2, "six", 21), (2, "7", 22), (1, "-1", 23)]
RESULTS = Counter([(10, 20, 2), (15, 22, 3)])
BAD = {
    ("a", 11): "cannot compute cast(`s` AS INT)",
    ("a", 13): "cannot compute 12 / `d` > 1",
    ("b", 21): "cannot compute cast(`w` AS INT) >= 0",
}


def _write(folder: Path, columns: dict[str, Any], number: int) -> None:
    folder.mkdir(exist_ok=True)
    rows = len(columns["v"])
    times = [EPOCH + dt.timedelta(seconds=10 * number + place) for place in range(rows)]
    table = pa.table({**columns, "ts": pa.array(times, TIME)})
    path = folder / f"{number}.parquet"
    pq.write_table(table, path)
    date(path, number)


@pytest.fixture
def streams(tmp_path: Path) -> tuple[Path, Path]:
    """Two batches of each stream, with bad rows in both."""
    a, b = tmp_path / "a", tmp_path / "b"
    for number, (rows_a, rows_b) in enumerate(
        [(ROWS_A[:3], ROWS_B[:2]), (ROWS_A[3:], ROWS_B[2:])]
    ):
        s, d, v = zip(*rows_a, strict=True)
        columns = {"s": pa.array(s, pa.string()), "d": pa.array(d, pa.int32()), "v": v}
        _write(a, {**columns, "unused": ["x"] * len(v)}, number)
        k, w, v = zip(*rows_b, strict=True)
        _write(b, {"k": pa.array(k, pa.int32()), "w": w, "v": v}, number)
    return a, b


@pytest.fixture(params=["frames", "folders"])
def frames_or_folders(request: pytest.FixtureRequest, spark: SparkSession) -> Any:
    return spark if request.param == "frames" else None


def _kept(checkpoint: Path) -> list[dict[str, str]]:
    paths = (checkpoint / "bad-rows").glob("__batch=*/*.parquet")
    return [each for path in paths for each in pq.read_table(path).to_pylist()]


def _bad_rows(checkpoint: Path) -> dict[tuple[str, Any], str]:
    kept = {}
    for each in _kept(checkpoint):
        row = json.loads(each["row"])
        assert "unused" not in row, "only columns that the query uses are read"
        kept[each["stream"], row["v"]] = each["reason"]
    return kept


def test_bad_rows_are_kept_with_their_reason_and_hold_up_nothing(
    spark, tmp_path, streams, frames_or_folders
):
    (a, b), checkpoint = streams, tmp_path / "c"
    inputs = {
        "a": stream_of(a, frames_or_folders, A),
        "b": stream_of(b, frames_or_folders, B),
    }
    query = braid.query(QUERY, inputs, event_time="ts", lateness="1 minute")
    with pytest.raises(BraidError, match="cannot compute") as failure:
        query.start(
            checkpoint=checkpoint, sink=braid.sinks.memory(), workers=2, available_now=True
        ).await_termination()
    assert "bad_rows='keep'" in str(failure.value.hint)
    sharing = spark.conf.get("spark.sql.subexpressionElimination.enabled")
    sink = braid.sinks.memory()
    run = query.start(
        checkpoint=checkpoint, sink=sink, workers=2, available_now=True, bad_rows="keep"
    )
    run.await_termination()
    found = Counter((row["va"], row["vb"], row["more"]) for row in sink.rows())
    assert found == RESULTS
    assert run.progress.bad_rows == len(BAD)
    assert run.progress.null_rows == 1
    kept = _bad_rows(checkpoint)
    assert kept == BAD
    assert spark.conf.get("spark.sql.subexpressionElimination.enabled") == sharing


def test_rows_that_do_not_fit_or_have_no_time_are_kept_as_they_were_read(spark, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        folder.mkdir()
    (a / "0.csv").write_text(
        "k,v,at\n1,10,2024-01-01 00:00:00\n2,x,2024-01-01 00:00:01\n3,30,yesterday\n"
    )
    (b / "0.jsonl").write_text(
        '{"k": 1, "w": 1, "at": "2024-01-01 00:00:00"}\n'
        '{"k": 3, "w": 3, "at": "2024-01-01 00:00:02"}\n'
    )
    (b / "1.jsonl").write_text(
        '{"k": 4, "w": 4, "at": "2024-01-01 00:00:00"}\n{"k": 2, "w": \n'
    )
    (a / "1.csv").write_text("k,v,at\n3,31,2024-01-01 00:00:03\nthree,32,2024-01-01 00:00:04\n")
    query = braid.query(
        "SELECT a.v, b.w FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.k = b.k",
        a=braid.files(a),
        b=braid.files(b),
        event_time={"a": "to_timestamp(at)", "b": "to_timestamp(at)"},
        lateness="1 minute",
    )
    sink = braid.sinks.memory()
    run = query.start(checkpoint=tmp_path / "c", sink=sink, workers=1, bad_rows="keep")
    run.await_termination()
    assert Counter((str(row["v"]), row["w"]) for row in sink.rows()) == Counter(
        [("10", 1), ("31", 3)]
    )
    kept = _kept(tmp_path / "c")
    assert run.progress.bad_rows == len(kept) == 3
    reasons = {each["row"]: each["reason"] for each in kept}
    assert reasons["three,32,2024-01-01 00:00:04"] == "it does not fit the columns"
    assert reasons['{"k": 2, "w": '] == "it does not fit the columns"
    (yesterday,) = (row for row in reasons if "yesterday" in row)
    assert reasons[yesterday].startswith("cannot compute its event time")


def test_a_row_that_a_frame_cannot_compute_ends_the_run_without_a_cure_that_is_none(
    spark, tmp_path, streams
):
    a, b = (stream_of(s, spark, c) for s, c in zip(streams, (A, B), strict=True))
    query = braid.query(
        "SELECT a.v, b.v AS vb FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k",
        a=a.selectExpr("CAST(s AS INT) AS k", "v", "ts"),
        b=b,
        event_time="ts",
    )
    run = query.start(
        checkpoint=tmp_path / "c",
        sink=braid.sinks.memory(),
        workers=1,
        available_now=True,
        bad_rows="keep",
    )
    with pytest.raises(BraidError, match="cannot compute CAST") as failure:
        run.await_termination()
    assert "a stream's DataFrame computes it" in str(failure.value.hint)
    assert "bad_rows='keep'" not in str(failure.value.hint)


def test_a_way_to_treat_bad_rows_that_is_unknown_is_refused(spark, tmp_path, streams):
    query = braid.query(
        QUERY, {"a": braid.files(streams[0]), "b": braid.files(streams[1])}, event_time="ts"
    )
    with pytest.raises(BraidError, match="unknown way to treat bad rows 'kep'"):
        query.start(checkpoint=tmp_path / "c", sink=braid.sinks.memory(), bad_rows="kep")


@pytest.mark.parametrize("name", ["bad", "Bad"])
def test_streams_may_have_columns_of_any_name(spark, tmp_path, frames_or_folders, name):
    a, b = tmp_path / "a", tmp_path / "b"
    _write(a, {"k": ["1", "x"], "v": [10, 11], name: ["fine", "odd"]}, 0)
    _write(b, {"k": ["1", "y"], "v": [20, 21]}, 0)
    query = braid.query(
        f"SELECT a.v AS va, b.v AS vb, a.{name} AS word "
        "FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE CAST(a.k AS INT) = CAST(b.k AS INT)",
        a=stream_of(a, frames_or_folders, f"k string, v bigint, {name} string, ts timestamp"),
        b=stream_of(b, frames_or_folders, "k string, v bigint, ts timestamp"),
        event_time="ts",
    )
    sink = braid.sinks.memory()
    query.start(
        checkpoint=tmp_path / "c", sink=sink, workers=1, available_now=True, bad_rows="keep"
    ).await_termination()
    assert sink.rows() == [{"va": 10, "vb": 20, "word": "fine"}]
    kept = {
        (each["stream"], json.loads(each["row"]).get(name)) for each in _kept(tmp_path / "c")
    }
    assert kept == {("a", "odd"), ("b", None)}


def test_bad_rows_are_no_part_of_groups(spark, tmp_path, streams, frames_or_folders):
    last = (
        {"s": ["9"], "d": pa.array([2], pa.int32())},
        {"k": pa.array([8], pa.int32()), "w": ["1"]},
    )
    for folder, columns in zip(streams, last, strict=True):
        _write(folder, {**columns, "v": [30]}, 2)  # so that all others are shown
    a, b = (stream_of(s, frames_or_folders, c) for s, c in zip(streams, (A, B), strict=True))
    query = braid.query(
        """\
SELECT CAST(a.s AS INT) AS k, count(*) AS n, sum(a.v) AS va, max(b.v) AS vb
FROM a [RANGE 100 SECONDS SLIDE 5 SECONDS], b [RANGE 100 SECONDS]
WHERE CAST(a.s AS INT) = b.k AND 12 / a.d > 1 AND CAST(b.w AS INT) >= 0
GROUP BY CAST(a.s AS INT)""",
        a=a,
        b=b,
        event_time="ts",
    )
    sink = braid.sinks.memory()
    run = query.start(
        checkpoint=tmp_path / "c", sink=sink, workers=2, available_now=True, bad_rows="keep"
    )
    run.await_termination()
    found = {(row["k"], row["n"], row["va"], row["vb"]) for row in sink.rows()}
    assert found == {(1, 1, 10, 20), (2, 1, 15, 22)}
    assert run.progress.bad_rows == len(BAD)
    assert _bad_rows(tmp_path / "c") == BAD


def test_a_bad_row_of_a_stream_that_joins_itself_is_kept_for_each_of_its_names(
    spark, tmp_path, streams, frames_or_folders
):
    query = braid.query(
        """\
SELECT x.v AS vx, y.v AS vy FROM a [RANGE 100 SECONDS] AS x, a [RANGE 100 SECONDS] AS y
WHERE CAST(x.s AS INT) = CAST(y.s AS INT) AND 12 / x.d > 1""",
        a=stream_of(streams[0], frames_or_folders, A),
        event_time="ts",
        lateness="1 minute",
    )
    sink = braid.sinks.memory()
    run = query.start(
        checkpoint=tmp_path / "c", sink=sink, workers=2, available_now=True, bad_rows="keep"
    )
    run.await_termination()
    found = Counter((row["vx"], row["vy"]) for row in sink.rows())
    assert found == Counter([(10, 10), (15, 15), (15, 13)])
    kept = Counter(
        (each["stream"], json.loads(each["row"])["v"]) for each in _kept(tmp_path / "c")
    )
    # "two" is cast for y, but not for x, whose condition does not let it through.
    assert kept == Counter([("x", 11), ("x", 13), ("y", 11), ("y", 14)])
    assert run.progress.bad_rows == 4


TORN = '{"k": 2, "v": '


def _json_streams(folder: Path, *files: str) -> braid.ContinuousQuery:
    """A query over a stream `a` of these files, and a stream `b` that joins all their keys."""
    for stream, texts in (("a", files), ("b", ['{"k": 1, "w": 1, "at": 0}\n'])):
        (folder / stream).mkdir()
        for number, text in enumerate(texts):
            (folder / stream / f"{number}.jsonl").write_text(text)
    return braid.query(
        "SELECT a.v, b.w FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.k = b.k",
        a=braid.files(folder / "a"),
        b=braid.files(folder / "b"),
        event_time="timestamp_millis(at)",
    )


def test_a_torn_first_line_is_kept_apart_or_the_way_to_it_is_told(spark, tmp_path):
    rows = [f'{{"k": 1, "v": {v}, "at": 0}}\n' for v in range(3)]
    query = _json_streams(tmp_path, f"{TORN}\n{rows[0]}", rows[1], f"{TORN}\n{rows[2]}")
    with pytest.raises(BraidError, match="its first line is not a JSON object") as failure:
        query.start(
            checkpoint=tmp_path / "f", sink=braid.sinks.memory(), workers=1
        ).await_termination()
    assert "bad_rows='keep'" in str(failure.value.hint)
    sink = braid.sinks.memory()
    query.start(
        checkpoint=tmp_path / "c", sink=sink, workers=1, bad_rows="keep"
    ).await_termination()
    assert Counter(row["v"] for row in sink.rows()) == Counter(range(3))
    assert [each["row"] for each in _kept(tmp_path / "c")] == [TORN, TORN]


def test_other_columns_are_found_behind_a_torn_line_too(spark, tmp_path):
    sound = '{"k": 1, "v": 1, "at": 0}\n'
    query = _json_streams(tmp_path, sound, f'{TORN}\n\n{{"k": 1, "x": 1, "at": 0}}\n')
    with pytest.raises(BraidError, match="it has a column 'x'"):
        query.start(
            checkpoint=tmp_path / "c", sink=braid.sinks.memory(), workers=1, bad_rows="keep"
        ).await_termination()
