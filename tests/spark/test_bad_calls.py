"""What people get wrong in calls from Python, and names that only a mapping takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import braid
from braid.model.errors import BraidError
from tests.spark.commands import Place, assert_refused, many_commands

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

JOIN = "SELECT {0}.k, {1}.v FROM {0} [RANGE 1 WEEK], {1} [RANGE 1 DAY] WHERE {0}.k = {1}.k"


class _Connected:
    """As a DataFrame of Spark Connect looks, which needs packages that are not there."""


_Connected.__module__ = "pyspark.sql.connect.dataframe"


@pytest.fixture
def rate(spark: SparkSession) -> DataFrame:
    rows = spark.readStream.format("rate").load()
    return rows.selectExpr("value % 10 AS k", "value AS v", "timestamp AS ts")


@pytest.mark.parametrize(
    ("text", "given", "words"),
    [
        (JOIN.format("a", "c"), {}, ["unknown stream 'c'", "known: a, b"]),
        (JOIN.format("a", "b"), {"latenes": "1 day"}, ["'latenes'", "did you mean lateness?"]),
        (JOIN.format("a", "b"), {"c": "folder"}, ["stream 'c' is a str", "braid.files"]),
        (JOIN.format("a", "b"), {"c": _Connected()}, ["stream 'c'", "Spark Connect"]),
        (JOIN.format("a", "b"), {"streams": 3}, ["streams is a int", "streams={"]),
        (
            JOIN.format("a", "b"),
            {"streams": {"a": None}},
            ["stream 'a' is given twice", "once"],
        ),
        (JOIN.format("a", "b"), {"streams": {"B": None}}, ["stream 'b' is given twice"]),
        (JOIN.format("a", "b"), {"streams": {1: None}}, ["the name of a stream is 1"]),
        (JOIN.format("a", "b"), {"lateness": 5}, ["cannot read the duration 5", "seconds"]),
        (JOIN.format("a", "b"), {"memory": "1MB"}, ["memory is an option of start()"]),
        (JOIN.format("a", "b"), {"event_time": None}, ["no event_time", 'event_time="ts"']),
        (JOIN.format("a", "b"), {"event_time": 5}, ["event_time is a int", "the column"]),
        (JOIN.format("a", "b"), {"event_time": {"a": 5}}, ["event_time of stream 'a' is a"]),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused(
    rate: DataFrame, text: str, given: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(BraidError) as refused:
        braid.query(text, **({"event_time": "ts", "a": rate, "b": rate} | given))
    assert all(word in str(refused.value) for word in words), str(refused.value)
    assert refused.value.hint


def test_a_mistyped_event_time_is_found_before_it_is_missed(rate: DataFrame) -> None:
    mistyped: dict[str, Any] = {"event_tme": "ts"}
    with pytest.raises(BraidError, match="unknown option 'event_tme'") as refused:
        braid.query(JOIN.format("a", "b"), a=rate, b=rate, **mistyped)
    assert refused.value.hint == "did you mean event_time?"


def test_a_table_among_streams_is_to_be_joined_before_the_query(
    spark: SparkSession, rate: DataFrame
) -> None:
    table = spark.range(3).selectExpr("id AS k", "id AS v", "TIMESTAMP'2024-01-01' AS ts")
    with pytest.raises(BraidError, match="'b' is a DataFrame that does not stream") as refused:
        braid.query(JOIN.format("a", "b"), event_time="ts", a=rate, b=table)
    assert "join it with one of the streams before the query" in str(refused.value)


@pytest.mark.parametrize("names", [("text", "streams"), ("event_time", "lateness")])
def test_a_mapping_takes_streams_of_any_name(rate: DataFrame, names: tuple[str, str]) -> None:
    bound = braid.query(JOIN.format(*names), dict.fromkeys(names, rate), event_time="ts")
    assert bound.query.sources() == names


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sink": "out"}, ["the sink 'out' is a path", "braid.sinks.parquet('out')"]),
        ({"late": braid.sinks.parquet("l")}, ["ParquetSink", "is no path"]),
        ({"name": ""}, ["the name of a run is ''", "leave it out"]),
        ({"name": " "}, ["the name of a run is ' '"]),
        ({"name": 5}, ["the name of a run is 5"]),
        ({"interval": 5}, ["cannot read the duration 5"]),
        ({"trigger": "data"}, ["trigger= of start() is called replan_when=", "'data'"]),
        ({"trigger": "10 seconds"}, ["no option trigger=", "interval='10 seconds'"]),
        ({"trigger": {"availableNow": True}}, ["no option trigger=", "available_now=True"]),
        ({"replan_when": "weekly"}, ["unknown replan_when 'weekly'", "known: data, memory"]),
        ({"replan_when": 5}, ["unknown replan_when 5", "known: data, memory, refined"]),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused_before_anything_is_made(
    rate: DataFrame, tmp_path: Path, given: dict[str, Any], words: list[str]
) -> None:
    bound = braid.query(JOIN.format("a", "b"), {"a": rate}, event_time="ts", b=rate)
    options = {"checkpoint": tmp_path / "checkpoint", "sink": braid.sinks.memory()} | given
    with pytest.raises(BraidError) as refused:
        bound.start(**options)
    assert all(word in str(refused.value) for word in words), str(refused.value)
    assert not (tmp_path / "checkpoint").exists()


def test_the_shell_takes_streams_of_any_name_and_says_what_it_has_not_checked(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path).fill(files=1)
    folder = place.file("a", 0).parent
    streams = ["--stream", f"text={folder}", "--stream", f"streams={folder}"]
    text = JOIN.format("text", "streams") + " AND uper(text.name) = 'A0'"
    with many_commands() as command:
        told = command("explain", "-q", text, *streams)
        assert told.code == 0, told
        assert "not checked without Spark: uper" in told.out
        places = ["--out", place.out, "--checkpoint", place.checkpoint]
        refused = command("run", "-q", text, *streams, *places)
        assert_refused(refused, "unknown function 'uper'")
        told = command("run", "-q", text.replace("uper", "upper"), *streams, *places)
        assert told.code == 0, told
        assert place.results().total() == 3
