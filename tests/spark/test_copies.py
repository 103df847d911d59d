"""Parts of what a run has left are lost, or restored from older copies: nothing is lost unsaid."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model.errors import CheckpointError
from tests.oracle.values import EPOCH, TIME
from tests.spark.folders import date, stream_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PAIRS = "SELECT a.k FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k"


class Pairs:
    """A query in whose file n of either stream there is a row n, so that n is a result."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark = folder, spark
        self.checkpoint, self.out = folder / "checkpoint", folder / "out"

    def run(self, *numbers: int) -> braid.Run:
        """Add files with these numbers, and read what has not been read."""
        for number in numbers:
            for name in "ab":
                (self.folder / name).mkdir(exist_ok=True)
                path = self.folder / name / f"{number}.parquet"
                pq.write_table(pa.table({"k": [number], "ts": pa.array([EPOCH], TIME)}), path)
                date(path, number)
        streams = {
            name: stream_of(self.folder / name, self.spark, "k bigint, ts timestamp")
            for name in "ab"
        }
        query = braid.query(PAIRS, streams, event_time="ts")
        run = query.start(
            checkpoint=self.checkpoint,
            sink=braid.sinks.parquet(self.out),
            workers=1,
            groups=2,
            available_now=True,
        )
        run.await_termination()
        return run

    def results(self) -> list[int]:
        paths = self.out.glob("__batch=*/*.parquet")
        return sorted(k for path in paths for k in pq.ParquetFile(path).read()["k"].to_pylist())


def replaced(place: Path, copy: Path | None) -> None:
    shutil.rmtree(place)
    if copy is not None:
        shutil.copytree(copy, place)


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ("gone", "does not have batch 1, which the checkpoint has committed"),
        ("older", "does not have batch 1, which the checkpoint has committed"),
        ("another branch", "has another batch 1 than the checkpoint has committed"),
    ],
)
def test_spark_cannot_give_other_rows_the_number_of_a_committed_batch(
    spark, tmp_path, damage, finding
):
    pairs = Pairs(tmp_path, spark)
    pairs.run(0)
    sparks_part, copies = pairs.checkpoint / "spark", tmp_path / "copies"
    older = {place: copies / place.name for place in (pairs.checkpoint, pairs.out)}
    for place, copy in older.items():
        shutil.copytree(place, copy)
    pairs.run(1)
    other = shutil.copytree(sparks_part, copies / "another branch")
    for place, copy in older.items():
        replaced(place, copy)
    pairs.run()  # batch 1 once more
    whole = shutil.copytree(sparks_part, copies / "whole")
    wrong = {"gone": None, "older": copies / "checkpoint" / "spark", "another branch": other}
    replaced(sparks_part, wrong[damage])
    with pytest.raises(CheckpointError, match=finding) as refused:
        pairs.run(2)
    assert str(sparks_part) in refused.value.message
    assert "whole checkpoint folder from one copy" in str(refused.value.hint)
    assert pairs.results() == [0, 1]
    if sparks_part.exists():
        shutil.rmtree(sparks_part)
    shutil.copytree(whole, sparks_part)
    pairs.run()
    assert pairs.results() == [0, 1, 2]
