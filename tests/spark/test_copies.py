"""Parts of what a run has left are gone, or older copies: no result is lost unsaid."""

from __future__ import annotations

import datetime as dt
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model.errors import BraidError, CheckpointError
from tests.oracle.values import EPOCH, TIME
from tests.spark.faulty import InPlace
from tests.spark.folders import date, stream_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PAIRS = "SELECT a.k FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k"


class Pairs:
    """Two streams with a row n each in file n, n seconds before the first, so n is a result."""

    def __init__(self, folder: Path, spark: SparkSession | None = None) -> None:
        self.folder, self.spark = folder, spark
        self.checkpoint, self.out = folder / "checkpoint", folder / "out"
        self.lateness = "1 hour"

    def run(self, *numbers: int, **options: Any) -> braid.Run:
        """Add files with these numbers, and read what has not been read."""
        for number in numbers:
            for name in "ab":
                (self.folder / name).mkdir(exist_ok=True)
                path = self.folder / name / f"{number}.parquet"
                times = pa.array([EPOCH - dt.timedelta(seconds=number)], TIME)
                pq.write_table(pa.table({"k": [number], "ts": times}), path)
                date(path, number)
        streams = {
            name: stream_of(self.folder / name, self.spark, "k bigint, ts timestamp")
            for name in "ab"
        }
        query = braid.query(PAIRS, streams, event_time="ts", lateness=self.lateness)
        run = query.start(
            checkpoint=self.checkpoint,
            **{"sink": braid.sinks.parquet(self.out)} | options,
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


def gaps(run: braid.Run) -> list[tuple[int, int | None]]:
    return [(e["batch"], e["newest"]) for e in run.events() if e["event"] == "gap"]


def test_results_that_are_not_where_they_were_shown_are_missed(spark, tmp_path):
    pairs = Pairs(tmp_path)
    assert gaps(pairs.run(0)) == gaps(pairs.run(1)) == []
    older = shutil.copytree(pairs.out, tmp_path / "older")
    pairs.run(2)
    pairs.out.rename(tmp_path / "out.bak")
    with pytest.raises(BraidError, match="is gone") as refused:
        pairs.run(3)
    assert str(pairs.out) in refused.value.message
    assert "restore it" in str(refused.value.hint)
    assert not pairs.out.exists()
    older.rename(pairs.out)
    assert gaps(pairs.run()) == [(2, 1)], "an older copy is told of"
    shutil.copytree(tmp_path / "out.bak" / "__batch=2", pairs.out / "__batch=2")
    assert gaps(pairs.run()) == []
    assert pairs.results() == [0, 1, 2, 3]


def test_results_of_another_branch_of_history_are_refused(spark, tmp_path):
    pairs = Pairs(tmp_path)
    pairs.run(0)
    older = shutil.copytree(pairs.checkpoint, tmp_path / "older")
    pairs.run(1)
    newer = shutil.copytree(pairs.out, tmp_path / "newer")
    replaced(pairs.checkpoint, older)
    shutil.rmtree(pairs.out / "__batch=1")
    pairs.run()
    replaced(pairs.out, newer)
    with pytest.raises(BraidError, match="other results") as refused:
        pairs.run(2)
    assert str(pairs.out / "__batch=1") in refused.value.message
    assert pairs.results() == [0, 1]


def test_a_copy_of_the_output_without_its_marker_goes_on(spark, tmp_path):
    pairs = Pairs(tmp_path)
    pairs.run(0)
    pairs.out.rename(tmp_path / "old")
    for batch in (tmp_path / "old").glob("*=*"):  # as `cp -r old/* out` does
        shutil.copytree(batch, pairs.out / batch.name)
    assert gaps(pairs.run(1)) == []
    assert pairs.results() == [0, 1]


def test_late_rows_that_are_yet_to_be_shown_are_not_left_behind(spark, tmp_path):
    pairs, late = Pairs(tmp_path), tmp_path / "late"
    pairs.lateness = "0 seconds"
    pairs.run(0, late=late)

    def die(*_: object) -> None:
        raise RuntimeError("killed")

    dying = InPlace(braid.sinks.parquet(pairs.out), publish=die)
    with pytest.raises(RuntimeError, match="killed"):
        pairs.run(1, late=late, sink=dying)
    with pytest.raises(BraidError, match="late rows that are yet to be shown") as refused:
        pairs.run(2)
    assert f"--late {late}" in str(refused.value.hint)
    assert not list(late.glob("__batch=1"))
    pairs.run(late=late)
    pairs.run()
    kept = [pq.ParquetFile(path).read()["k"][0].as_py() for path in late.glob("*/*/*.parquet")]
    assert sorted(kept) == [1, 1, 2, 2]


def test_a_checkpoint_of_parts_of_two_copies_leaves_no_batch_unshown(spark, tmp_path):
    pairs = Pairs(tmp_path)
    pairs.run(0)
    older = shutil.copytree(pairs.checkpoint, tmp_path / "older")
    pairs.run(1)
    newer = shutil.copytree(pairs.checkpoint, tmp_path / "newer")
    replaced(pairs.checkpoint, older)
    shutil.copy(newer / "published.json", pairs.checkpoint)
    shutil.rmtree(pairs.out / "__batch=1")
    with pytest.raises(CheckpointError, match="batch 1 were shown") as refused:
        pairs.run(2)
    assert "whole checkpoint folder from one copy" in str(refused.value.hint)
    replaced(pairs.checkpoint, older)
    pairs.run()
    assert pairs.results() == [0, 1, 2]
