"""State that outgrows its budget, through Spark: exact results, and memory stays bounded."""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import braid
from braid.control.choose import ORDERS
from braid.control.sizes import parse_size
from braid.model.errors import BraidError
from braid.spark.task import local_folder
from braid.worker.memory_tier import memory_root
from tests.oracle.answers import counted
from tests.oracle.test_plans_agree_with_duckdb import CAMPAIGN
from tests.spark.faulty import with_cluster
from tests.spark.folders import date, stream_of
from tests.spark.kill_workloads import (
    GROUPS,
    LATENESS_S,
    ONE_KEY,
    SCHEMA,
    STREAMS,
    TREE,
    Input,
)
from tests.unit.state.making import small_disk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark.kill_workloads import Workload

pytestmark = pytest.mark.spark

FILES = 7
SPARK_SCHEMA = from_arrow_schema(SCHEMA)


class Place:
    """A workload's input as folders of files, and runs on it.

    With `frames`, a Spark session, they are read as streaming DataFrames.
    """

    def __init__(
        self,
        folder: Path,
        workload: Workload,
        rows: int = 300,
        frames: SparkSession | None = None,
    ) -> None:
        self.folder, self.workload, self.frames = folder, workload, frames
        self.wrap: Callable[[Any], Any] = lambda cluster: cluster
        self.input = Input(seed=11, batches=FILES, rows=rows)
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True)

    def arrive(self, files: range) -> None:
        for stream in STREAMS:
            for number in files:
                path = self.folder / stream / f"{number:04}.parquet"
                pq.write_table(self.input.table(stream, number), path)
                date(path, number)

    def start(self, **options: Any) -> braid.Run:
        query = braid.query(
            self.workload.query,
            event_time="ts",
            lateness=f"{LATENESS_S} seconds",
            **{s: stream_of(self.folder / s, self.frames, SPARK_SCHEMA) for s in STREAMS},
        )
        return with_cluster(query, self.wrap).start(
            checkpoint=self.folder / "checkpoint",
            sink=braid.sinks.parquet(self.folder / "out"),
            groups=32,
            plan=self.workload.plan,
            available_now=True,
            **options,
        )

    def run(self, **options: Any) -> list[dict[str, Any]]:
        """Run to the end of what has arrived; the events."""
        run = self.start(**options)
        run.await_termination()
        return run.events()

    def published(self) -> Counter[tuple[Any, ...]]:
        paths = (self.folder / "out").glob("__batch=*/*.parquet")
        return sum((counted(pq.ParquetFile(path).read()) for path in paths), Counter())

    def check(self) -> None:
        expected = sum(self.input.expected(self.workload).values(), Counter())
        assert self.published() == expected


def count(events: list[dict[str, Any]], kind: str) -> int:
    return sum(event["event"] == kind for event in events)


@pytest.mark.parametrize("policy", ORDERS)
@pytest.mark.parametrize("overflow", ["probe", "defer"])
def test_results_are_exact_whichever_groups_go(
    spark: SparkSession, tmp_path: Path, overflow: str, policy: str
) -> None:
    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(FILES))
    options = {"memory": "8KB", "overflow": overflow, "spill_policy": policy}
    events = place.run(workers=2, strategy="spill-only", **options)
    place.check()
    assert count(events, "spill") >= FILES
    assert (count(events, "cleanup") > 0) == (overflow == "defer")


@pytest.mark.parametrize("workload", [TREE, GROUPS], ids=lambda w: w.name)
@pytest.mark.parametrize("overflow", ["probe", "defer"])
def test_trees_and_groups_overflow_too(
    spark: SparkSession, tmp_path: Path, workload: Workload, overflow: str
) -> None:
    place = Place(tmp_path, workload)
    place.arrive(range(FILES))
    options = {"memory": "4KB", "overflow": overflow, "cleanup": "idle"}
    events = place.run(workers=3, strategy="spill-only", **options)
    place.check()
    assert count(events, "spill") >= FILES


def test_what_is_on_disk_survives_other_workers_other_budgets_and_other_ways(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(3))
    place.run(workers=2, memory="2KB", overflow="defer", cleanup="never")
    owed = sum(place.input.expected(ONE_KEY)[n].total() for n in range(3))
    assert place.published().total() < owed
    place.arrive(range(3, 5))
    place.run(workers=3, memory="8KB", overflow="defer", cleanup="never")
    place.arrive(range(5, FILES))
    place.run(workers=1)
    place.check()


@pytest.mark.parametrize(
    ("strategy", "overflow"),
    [
        ("spill-only", "probe"),
        ("spill-only", "defer"),
        ("lazy-disk tau_ms=0", "defer"),
        ("auto", "probe"),
    ][:: 1 if CAMPAIGN > 1 else 2],
)
def test_memory_stays_within_the_budget_and_one_batch(
    spark: SparkSession, tmp_path: Path, strategy: str, overflow: str
) -> None:
    rows, budget = 20_000, parse_size("100KB")
    place = Place(tmp_path, ONE_KEY, rows)
    place.arrive(range(FILES))
    most: Counter[str] = Counter()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            for worker, size in in_memory(tmp_path / "checkpoint").items():
                most[worker] = max(most[worker], size)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        events = place.run(
            workers=2, memory=budget, overflow=overflow, strategy=strategy, assign="0.7,0.3"
        )
    finally:
        done.set()
        watcher.join()
    place.check()
    batches = [event for event in events if event["event"] == "batch"]
    state = max(w["memory_bytes"] + w["disk_bytes"] for b in batches for w in b["workers"])
    assert state > 20 * budget
    # k and ts as one hash and one time, j not at all, and v; some rows more on one worker.
    batch_bytes = 3 * rows * 3 * 8 * 0.7 * 1.1
    assert set(most) == {"0", "1"}
    assert max(most.values()) <= budget + batch_bytes


@pytest.mark.parametrize("overflow", ["probe", "defer"])
def test_a_full_disk_leaves_groups_in_memory_and_is_told_once(
    spark: SparkSession, tmp_path: Path, overflow: str
) -> None:
    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(FILES))
    (folder,) = spark.sparkContext.parallelize([0], 1).map(lambda _: local_folder()).collect()
    with small_disk(folder / "braid", "16k"):
        events = place.run(
            workers=2, memory="8KB", overflow=overflow, strategy="spill-only", cleanup="never"
        )
        place.run(workers=2, overflow=overflow)
    place.check()
    refused = [e["worker"] for e in events if e["event"] == "spill" and not e["groups"]]
    assert sorted(refused) == [0, 1]


def in_memory(checkpoint: Path) -> Counter[str]:
    """Bytes that each worker has in the memory tier now, as anyone can see from outside."""
    sizes: Counter[str] = Counter()
    for home in memory_root().glob("braid-*"):
        try:
            if (home / "checkpoint").read_text() != str(checkpoint):
                continue
            for worker in home.glob("*/[0-9]*"):
                with os.scandir(worker) as files:
                    seen = {file.name: file.stat().st_size for file in files}
                if seen.keys() == set(os.listdir(worker)):  # else it is of no one moment
                    sizes[worker.name] += sum(seen.values())
        except FileNotFoundError:
            continue
    return sizes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"memory": "12 quarts"}, "cannot read the size '12 quarts'"),
        ({"memory": "1MB", "overflow": "deffer"}, "deffer"),
        ({"memory": "1MB", "spill_policy": "lagest"}, "lagest"),
        ({"memory": "1MB", "strategy": "lazy-disc"}, "unknown strategy 'lazy-disc'"),
        ({"strategy": "lazy-disk theta=0.5"}, "unknown parameter of lazy-disk 'theta'"),
        ({"strategy": "lazy-disk theta_r=half"}, "cannot read 'theta_r=half'"),
        ({"strategy": "auto", "spill_percent": 10}, "auto takes no spill percentage"),
        ({"workers": 2, "assign": "0.5,0.6"}, "sum to 1.1"),
        ({"workers": 2, "assign": "1"}, "1 shares in '1', and 2 workers"),
        ({"strategy": "spill-only", "spill_percent": 0}, "above 0"),
        ({"memory": "1MB", "cleanup": "later"}, "later"),
        ({"migrate_at": ["soon:(a b c)"]}, "cannot read 'soon:"),
        ({"migrate_at": ["2:(a b d)"]}, "names 'd', which is no stream"),
        ({"migrate_at": ["2:(a b)"]}, "lacks the stream 'c'"),
        ({"migrate_at": ["2:(a b c)"], "migration": "by foot"}, "by foot"),
    ],
)
def test_bad_options_are_named(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(1))
    with pytest.raises(BraidError, match=words):
        place.start(**options)
    assert not (tmp_path / "checkpoint").exists()
