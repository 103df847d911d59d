"""Times in nanoseconds, which Spark does not read: one error, and no stack trace before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model.errors import BraidError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERY = "SELECT a.k FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k"


def test_nanoseconds_are_refused_without_a_stack_trace(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = pa.table({"k": [1], "ts": pa.array([1], pa.timestamp("ns", "UTC"))})
    pq.write_table(rows, tmp_path / "0.parquet")
    stream = braid.files(tmp_path)
    with pytest.raises(BraidError, match="'ts' has nanoseconds") as caught:
        braid.query(QUERY, event_time="ts", a=stream, b=stream)
    assert "microseconds" in str(caught.value.hint)
    told = capfd.readouterr()
    assert "at org.apache.spark" not in told.err + told.out


def test_nanoseconds_of_the_old_form_are_read_as_spark_reads_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table({"k": [1], "ts": pa.array([1], pa.timestamp("ns", "UTC"))})
    pq.write_table(rows, tmp_path / "0.parquet", use_deprecated_int96_timestamps=True)
    stream = braid.files(tmp_path)
    assert braid.query(QUERY, event_time="ts", a=stream, b=stream).explain()
