"""Clusters: workers stay with their state, and results are exact.

A process has one JVM, and a JVM one master: so each cluster is used from a process of its own.
"""

from __future__ import annotations

import datetime as dt
import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
import pytest

import braid
from braid.model.expression import Column
from braid.model.query import Output, Query, StreamRef
from braid.spark.java import find_java
from tests.oracle.values import EPOCH, TIME
from tests.spark.hostile import Hostile
from tests.spark.kill_workloads import GROUPS, ONE_KEY, TREE
from tests.spark.test_exact import RandomJoin, Road, equal, published, random_join
from tests.spark.test_overflow import FILES, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BATCHES = 22
PATIENCE_S = 120


def in_own_process(function: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def long_join() -> RandomJoin:
    """Three streams in many files; most results have members from several of them."""
    rng = random.Random(5)
    refs = tuple(StreamRef(s, s, 4_000_000) for s in "abc")
    output = [Output(f"{c}{s}", Column(n, c)) for n, s in enumerate("abc") for c in "kv"]
    files = {}
    for stream in "abc":
        files[stream] = [
            pa.table(
                {
                    "k": [rng.randrange(12) for _ in range(20)],
                    "v": [rng.randrange(10**6) for _ in range(20)],
                    "ts": pa.array(
                        [EPOCH + dt.timedelta(seconds=2 * n + i / 10) for i in range(20)], TIME
                    ),
                }
            )
            for n in range(BATCHES)
        ]
    window = "[RANGE 4 SECONDS]"
    select = ", ".join(f"{s}.{column} AS {column}{s}" for s in "abc" for column in "kv")
    text = (
        f"SELECT {select} FROM a {window}, b {window}, c {window} WHERE a.k = b.k AND b.k = c.k"
    )
    return RandomJoin(
        text, Query("", refs, equal(["k"] * 3), tuple(output)), 0, files, (4, 4), 64
    )


def on_local_cluster(folder: Path) -> list[list[dict[str, Any]]]:
    """Check some joins on two executors; returns each batch's workers of the longest."""
    spark = braid.session("local-cluster[2,1,1024]")
    try:
        road = Road(long_join(), folder / "long", "parquet", "parquet", spark)
        road.add_files(0)
        road.travel(4)
        road.check()
        for seed, key, source in ((7, "string", "frames"), (8, "bigint", "parquet")):
            join = random_join(seed, key=key)
            other = Road(join, folder / key, source, "parquet", spark)
            other.add_files(0, 1)
            if source == "parquet":
                other.travel(join.workers[0])
            other.add_files(1)
            other.travel(join.workers[1])
            other.check()
        return workers_by_batch(road.runs[0].events())
    finally:
        spark.stop()


def workers_by_batch(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [event["workers"] for event in events if event["event"] == "batch"]


def join_spaces(batches: list[list[dict[str, Any]]]) -> dict[int, set[str]]:
    """By worker, the executors that it was on."""
    found: dict[int, set[str]] = {}
    for workers in batches:
        for share in workers:
            found.setdefault(share["worker"], set()).add(share["host"])
    return found


def test_workers_stay_on_executors_and_results_are_exact(tmp_path: Path) -> None:
    batches = in_own_process(on_local_cluster, tmp_path)
    assert len(batches) == BATCHES
    assert all(len(executors) == 1 for executors in join_spaces(batches).values())
    load = Counter(executor for where in join_spaces(batches).values() for executor in where)
    assert list(load.values()) == [2, 2]
    assert sum(share["rebuilt_runs"] for workers in batches for share in workers) == 0
    assert min(share["state_rows"] for share in batches[-1]) > 0


def hostile_on_three_executors(folder: Path) -> list[list[dict[str, Any]]]:
    """Check a workload of each kind under a hostile strategy; the events of each."""
    spark = braid.session("local-cluster[3,1,1024]")
    try:
        events = []
        for seed, (workload, overflow) in enumerate(
            [(ONE_KEY, "defer"), (TREE, "probe"), (GROUPS, "defer")]
        ):
            place = Place(folder / f"{seed}", workload)
            place.arrive(range(FILES))
            options = {"memory": "64KB", "overflow": overflow, "strategy": Hostile(seed)}
            events.append(place.run(workers=3, **options))
            place.check()
        return events
    finally:
        spark.stop()


def test_groups_move_between_executors_and_results_are_exact(tmp_path: Path) -> None:
    for events in in_own_process(hostile_on_three_executors, tmp_path):
        moves = [event for event in events if event["event"] == "relocate"]
        received = [event for event in moves if event["step"] == "receive"]
        sent = [event for event in moves if event["step"] == "send"]
        assert sum(e["rows"] for e in received) == sum(e["rows"] for e in sent) > 0
        batches = workers_by_batch(events)
        assert len({host for where in join_spaces(batches).values() for host in where}) == 3
        assert sum(share["rebuilt_runs"] for workers in batches for share in workers) == 0


# A standalone cluster


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """A master and a worker on this machine; what they say goes to files in `folder`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    host = ("--host", "127.0.0.1", "--webui-port", "0")
    work = ("-c", "2", "-m", "2g", "-d", str(folder / "work"))
    with (
        spark_process(folder, "master.Master", *host, "--port", str(port)),
        spark_process(folder, "worker.Worker", *host, *work, master) as log,
    ):
        began = time.monotonic()
        while "Successfully registered with master" not in log.read_text():
            assert time.monotonic() < began + PATIENCE_S, log.read_text()
            time.sleep(0.2)
        yield master


@contextmanager
def spark_process(folder: Path, name: str, *arguments: str) -> Iterator[Path]:
    find_java()
    home = Path(pyspark.__file__).parent
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments]
    log = folder / f"{name}.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            command, env=loopback(SPARK_HOME=str(home)), stdout=file, stderr=file
        )
        try:
            yield log
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def loopback(**more: str) -> dict[str, str]:
    return os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"} | more


def test_the_command_runs_on_a_standalone_cluster(tmp_path: Path) -> None:
    join = random_join(12, key="pair")
    road = Road(join, tmp_path, "parquet", "parquet", None)
    road.add_files(0)
    conf = tmp_path / "conf"
    conf.mkdir()
    # Two executors on the one worker.
    (conf / "spark-defaults.conf").write_text(
        "spark.executor.cores 1\nspark.executor.memory 768m\n"
    )
    streams = [f"--stream={source}={tmp_path / source}" for source in join.files]
    with standalone_cluster(tmp_path) as master:
        done = subprocess.run(
            [
                *(Path(sys.executable).parent / "braid", "run", "-q", join.text, *streams),
                *("--out", tmp_path / "out", "--checkpoint", tmp_path / "checkpoint"),
                *("--lateness", f"{join.lateness_ms} milliseconds", "--workers", "4"),
                *("--master", master, "--events", tmp_path / "events.jsonl"),
            ],
            env=loopback(SPARK_CONF_DIR=str(conf)),
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
        )
    assert done.returncode == 0, done.stderr
    assert published(tmp_path / "out") == join.expected()
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    load = Counter(e for where in join_spaces(workers_by_batch(events)).values() for e in where)
    assert list(load.values()) == [2, 2]
