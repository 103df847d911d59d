"""Checkpoints that an older version left in the middle of something are continued exactly."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.record.checkpoint import write_sealed
from tests.spark.kill_workloads import LATENESS_S, STREAMS, Input
from tests.spark.old_checkpoints import (
    BATCHES,
    CASES,
    KEPT,
    ROWS,
    SEED,
    WORKLOAD,
    published,
    published_late,
    record_in,
)

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).parent.parent / "data" / "checkpoints"
FORMATS = sorted(path.name for path in FOLDER.iterdir())


@dataclass(frozen=True)
class StoredInput(Input):
    """The rows as they were written then, whatever random numbers are like today."""

    folder: Path

    def table(self, stream: str, number: int) -> pa.Table:
        return pq.read_table(self.folder / stream / f"{number:04}.parquet")


def unpublish(folder: Path) -> None:
    """Undo the publishing of the last batch, as if the run had been killed before it."""
    record = record_in(folder / "checkpoint")
    number = record["batch"]
    for name, staged in (("out", record["staged"]), ("late", record["late_staged"])):
        staging = folder / name / ".staging"
        staging.mkdir(exist_ok=True)
        (folder / name / f"batch={number}").rename(staging / Path(staged).name)
    write_sealed(folder / "checkpoint" / "published.json", {"batch": number - 1})


@pytest.mark.parametrize(
    ("name", "is_published"), [*((name, True) for name in CASES), ("changing", False)]
)
@pytest.mark.parametrize("made_by", FORMATS)
def test_a_run_goes_on_where_an_older_version_was_killed(
    spark, tmp_path, made_by, name, is_published
):
    stored, streams = FOLDER / made_by / name, FOLDER / made_by / "streams"
    for kept in KEPT:
        shutil.copytree(stored / kept, tmp_path / kept)
    record = record_in(tmp_path / "checkpoint")
    assert CASES[name].is_reached(record), "or there is nothing to go on with"
    if not is_published:
        unpublish(tmp_path)
    before = published(tmp_path / "out")
    query = braid.query(
        WORKLOAD.query,
        **{stream: braid.files(streams / stream) for stream in STREAMS},
        event_time="ts",
        lateness=f"{LATENESS_S} seconds",
    )
    run = query.start(
        checkpoint=tmp_path / "checkpoint",
        sink=braid.sinks.parquet(tmp_path / "out"),
        late=tmp_path / "late",
        workers=2,
        groups=16,
        memory="8KB",
        overflow="defer" if name == "owing" else "probe",
    )
    run.await_termination()
    assert run.progress.batches > 0, "nothing was done"
    assert "gap" not in [event["event"] for event in run.events()]
    given = StoredInput(SEED, BATCHES, ROWS, streams)
    after = published(tmp_path / "out")
    assert not before - after, "results that had been shown are gone"
    assert after == sum(given.expected(WORKLOAD).values(), Counter())
    late = sum(given.expected_late(WORKLOAD).values(), Counter())
    assert published_late(tmp_path / "late") == late
