"""Columns of folders outlive their first file: a checkpoint keeps them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model.errors import BraidError
from tests.oracle.values import EPOCH, TIME
from tests.spark.commands import Place, many_commands

if TYPE_CHECKING:
    from pathlib import Path

    from braid import ContinuousQuery
    from braid.front.query import UnboundQuery
    from braid.front.run import Run

pytestmark = pytest.mark.spark

PAIRS = (
    "SELECT a.k, a.v AS va, b.v AS vb FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k"
)


def asked(folder: Path) -> ContinuousQuery | UnboundQuery:
    streams = {name: braid.files(folder / name) for name in "ab"}
    return braid.query(PAIRS, streams, event_time="ts")


def put(folder: Path, name: str, value: int) -> Path:
    folder.mkdir(exist_ok=True)
    columns = {"k": pa.array([1]), "ts": pa.array([EPOCH], TIME), "v": pa.array([value])}
    pq.write_table(pa.table(columns), folder / name)
    return folder / name


def wait_for_rows(run: Run, rows: int) -> None:
    until = time.monotonic() + 60
    while run.progress.input_rows < rows:
        assert time.monotonic() < until, run.status
        time.sleep(0.05)


def test_a_run_that_follows_goes_on_in_empty_folders_and_behind_half_written_files(
    spark, tmp_path
):
    read = [put(tmp_path / name, "0.parquet", 0) for name in "ab"]
    run = asked(tmp_path).start(
        checkpoint=tmp_path / "c", sink=braid.sinks.memory(), workers=1, follow=True
    )
    wait_for_rows(run, 2)
    run.stop()
    whole = read[0].read_bytes()
    for path in read:
        path.unlink()
    half = tmp_path / "a" / "1.parquet"
    half.write_bytes(whole[: len(whole) // 2])

    query, sink = asked(tmp_path), braid.sinks.memory()
    with pytest.raises(BraidError, match=r"1\.parquet: it is not complete") as caught:
        query.start(checkpoint=tmp_path / "another", sink=sink)
    assert "put one complete file there first" in str(caught.value.hint)
    run = query.start(checkpoint=tmp_path / "c", sink=sink, workers=1, follow=True)
    put(tmp_path / "a", "1.parquet", 1)
    wait_for_rows(run, 1)
    put(tmp_path / "b", "1.parquet", 2)
    wait_for_rows(run, 2)
    run.stop()
    found = sorted((row["va"], row["vb"]) for row in sink.rows())
    assert found == [(0, 2), (1, 0), (1, 2)]


def test_the_first_complete_file_tells_the_columns(spark, tmp_path):
    for name in "ab":
        put(tmp_path / name, "2.parquet", 0)
    (tmp_path / "a" / "1z.parquet").write_bytes(b"PAR1")
    run = asked(tmp_path).start(
        checkpoint=tmp_path / "c", sink=braid.sinks.memory(), workers=1, follow=True
    )
    put(tmp_path / "a", "1z.parquet", 1)
    wait_for_rows(run, 3)
    run.stop()


def test_a_command_goes_on_without_its_first_files_whatever_the_next_ones_look_like(tmp_path):
    place = Place(tmp_path).fill(1)
    rows = {stream: place.rows(stream, 0) for stream in "abc"}
    with many_commands() as command:
        told = command(*place.command())
        assert told.code == 0, told
        for stream in "abc":
            place.file(stream, 0).unlink()
        told = command(*place.command())
        assert told.code == 0, told
        assert "0 rows in 0 batches" in told.out
        for row in rows["b"]:
            row["v"] = 0.5 if row["k"] is None else row["v"]
            row["name"] = 7  # to look at, a number
            row["k"] = None if row["k"] == 3 else row["k"]
        place.write("b", 1, [row for row in rows["b"] if row["k"] is None])
        told = command(*place.command())
        assert told.code == 0, told
        assert "3 rows in 1 batches" in told.out
