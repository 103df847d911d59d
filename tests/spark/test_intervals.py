"""Intervals in Parquet results, as Spark, Arrow and DuckDB read them."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DayTimeIntervalType, StructType

import braid
from braid.worker.spark_schema import NOTE, with_note

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

TIME = pa.timestamp("us", "UTC")
STEPS_US = [0, 1, 1_500_000, 3_600_000_000]
KINDS = [
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.binary(), pa.date32(), TIME, pa.timestamp("us"), pa.decimal128(12, 3)),
    *(pa.list_(pa.int32()), pa.map_(pa.string(), pa.list_(TIME)), pa.duration("us")),
    pa.struct({"x": pa.int64(), "y": pa.struct({"z": pa.duration("us")})}),
]


def test_the_note_has_the_row_type_that_spark_itself_would_note() -> None:
    schema = pa.schema([(f'c{number} "ß"', kind) for number, kind in enumerate(KINDS)])
    note = with_note(schema).metadata[NOTE].decode()
    assert StructType.fromJson(json.loads(note)) == from_arrow_schema(schema)


def test_results_without_intervals_have_no_note() -> None:
    schema = pa.schema({"k": pa.int64(), "at": TIME})
    assert with_note(schema) is schema


@pytest.mark.spark
def test_an_interval_in_parquet_is_one_to_spark_and_microseconds_to_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name, factor in (("o", 0), ("p", 1)):
        (tmp_path / name).mkdir()
        times = pa.array([step * factor for step in STEPS_US]).view(TIME)
        pq.write_table(pa.table({"k": range(4), "at": times}), tmp_path / name / "0.parquet")
    text = (
        "SELECT o.k, p.at, p.at - o.at AS later "
        "FROM o [RANGE 1 DAY], p [RANGE 1 DAY] WHERE o.k = p.k"
    )
    folders = {name: braid.files(tmp_path / name) for name in "op"}
    query, seen = braid.query(text, folders, event_time="at"), []

    def note(rows: DataFrame, batch: int) -> None:
        seen.extend((row["k"], row["later"]) for row in rows.collect())

    for sink in (braid.sinks.parquet(tmp_path / "out"), braid.sinks.callback(note)):
        place = tmp_path / f"checkpoint of {type(sink).__name__}"
        query.start(checkpoint=place, sink=sink, workers=2).await_termination()
    rows = spark.read.parquet(str(tmp_path / "out"))
    assert rows.schema["later"].dataType == DayTimeIntervalType()
    expected = [(k, dt.timedelta(microseconds=step)) for k, step in enumerate(STEPS_US)]
    assert sorted((row["k"], row["later"]) for row in rows.collect()) == expected
    assert sorted(seen) == expected
    files = f"read_parquet('{tmp_path}/out/*/*.parquet')"
    with duckdb.connect() as db:
        found = db.sql(f"SELECT k, to_microseconds(later) FROM {files} ORDER BY k").fetchall()
    assert found == expected
    part = next((tmp_path / "out").glob("*/*.parquet"))
    assert pq.read_schema(part).field("later").type == pa.duration("us")
