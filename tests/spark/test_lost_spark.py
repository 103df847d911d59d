"""Spark goes away under a run: one clear error, and nothing is left in memory."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

import braid
from braid.model.errors import BraidError
from braid.worker.memory_tier import memory_root
from tests.spark.commands import Place as Commands
from tests.spark.kill_workloads import ONE_KEY
from tests.spark.test_cluster import in_own_process
from tests.spark.test_overflow import FILES, Place
from tests.spark.test_stopping import _command_of, _processes_of, command, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from braid.events import Event

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_the_death_of_spark_is_told_as_such(tmp_path: Path) -> None:
    place, log = Commands(tmp_path).fill(10), tmp_path / "log"
    with command(place, log) as process:
        wait_for(log, "batch 1:")
        (java,) = (p for p in _processes_of(process.pid) if "SparkSubmit" in _command_of(p))
        os.kill(java, signal.SIGKILL)
        assert process.wait(60) == 1
    told = log.read_text()
    assert "error: Spark has died (SIGKILL)" in told
    assert "the same command goes on; in Python, a new session and a new query" in told
    assert "Traceback" not in told
    assert not [h for h in memory_root().glob("braid-*") if _is_of(h, place.checkpoint)]


def _is_of(home: Path, checkpoint: Path) -> bool:
    return (home / "checkpoint").is_file() and str(checkpoint) in (
        home / "checkpoint"
    ).read_text(errors="replace")


def stop_under_a_run(folder: Path, as_frames: bool) -> tuple[str, str]:
    """Stop Spark while a query runs; the error's message and the last event's reason."""
    spark = braid.session("local[2]")
    place = Place(folder, ONE_KEY, frames=spark if as_frames else None)
    place.arrive(range(FILES))
    begun = threading.Event()

    def look(event: Event) -> None:
        if event.name == "batch":
            begun.set()

    run = place.start(workers=2)
    run.listen(look)
    assert begun.wait(120)
    spark.stop()
    with pytest.raises(BraidError) as caught:
        run.await_termination()
    assert not [h for h in memory_root().glob("braid-*") if _is_of(h, folder / "checkpoint")]
    return caught.value.message, run.events()[-1]["reason"]


@pytest.mark.parametrize("as_frames", [False, True], ids=["folders", "frames"])
def test_stopping_spark_under_a_run_is_told_as_such(tmp_path: Path, as_frames: bool) -> None:
    told = in_own_process(stop_under_a_run, tmp_path, as_frames)
    assert told == ("the Spark session was stopped", "failed")


def start_after_a_stop(folder: Path) -> list[str]:
    """What is said of a query whose Spark was stopped, and of a new one over its streams."""
    spark = braid.session("local[2]")
    rows = spark.readStream.format("rate").load()
    rate = rows.selectExpr("value AS k", "timestamp AS ts")
    text = "SELECT a.k FROM a [RANGE 1 DAY], b [RANGE 1 DAY] WHERE a.k = b.k"
    bound = braid.query(text, event_time="ts", a=rate, b=rate)
    spark.stop()
    said = []
    for start in (
        lambda: bound.start(checkpoint=folder / "c", sink=braid.sinks.memory()),
        lambda: braid.query(text, event_time="ts", a=rate, b=rate),
    ):
        with pytest.raises(BraidError) as caught:
            start()
        said.append(str(caught.value))
    assert not (folder / "c").exists()
    return said


def test_a_query_whose_spark_was_stopped_is_to_be_made_anew(tmp_path: Path) -> None:
    for said in in_own_process(start_after_a_stop, tmp_path):
        assert "the Spark session was stopped" in said
        assert "start Spark again with braid.session(), and make the query anew" in said
