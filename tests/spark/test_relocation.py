"""Groups that move between workers, through Spark: exact results, and every step to be seen."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

import braid
from braid.control.relocation import Stage
from braid.control.strategy import STRATEGIES, parameters_of
from braid.engine.cluster import TryAgain
from braid.events import BatchDone, Migrated
from braid.record.move import Move
from braid.record.worker_orders import Share
from tests.oracle.test_plans_agree_with_duckdb import CAMPAIGN
from tests.spark.faulty import InPlace, with_cluster
from tests.spark.hostile import Hostile
from tests.spark.kill_workloads import GROUPS, ONE_KEY, TREE
from tests.spark.test_overflow import FILES, Place, count
from tests.spark.test_streaming import PAIRS, Folder, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from braid.control.statistics import Snapshot
    from braid.events import Event
    from braid.plan.join_plan import JoinPlan
    from braid.record.orders import Orders
    from tests.spark.kill_workloads import Workload

pytestmark = pytest.mark.spark
PATIENCE_S = 60


def steps(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == "relocate"]


@pytest.mark.parametrize("workload", [ONE_KEY, TREE, GROUPS], ids=lambda w: w.name)
@pytest.mark.parametrize("overflow", ["probe", "defer"])
@pytest.mark.parametrize("seed", range(2 if CAMPAIGN > 1 else 1))
def test_results_are_exact_under_a_hostile_strategy(
    spark: SparkSession, tmp_path: Path, workload: Workload, overflow: str, seed: int
) -> None:
    place = Place(tmp_path, workload)
    place.arrive(range(FILES))
    memory = ["64KB", "1MB"][seed]
    events = place.run(workers=3, memory=memory, overflow=overflow, strategy=Hostile(seed))
    place.check()
    assert count(events, "refused") >= FILES
    assert count(events, "spill") + len(steps(events)) > 0


@pytest.mark.parametrize(
    ("name", "overflow"),
    list(product(STRATEGIES, ["probe", "defer"]))[:: 1 if CAMPAIGN > 1 else 3],
)
def test_results_are_exact_under_every_strategy(
    spark: SparkSession, tmp_path: Path, name: str, overflow: str
) -> None:
    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(FILES))
    eager = " tau_ms=0" if "tau_ms" in parameters_of(name) else ""
    events = place.run(
        workers=3,
        memory="40KB",
        overflow=overflow,
        strategy=name + eager,
        assign="0.6,0.2,0.2",
    )
    place.check()
    acted = bool(count(events, "spill") + len(steps(events)))
    assert acted == (name != "none") or name == "flux-load", "which may find it even enough"


def test_every_move_goes_through_all_steps(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(FILES))
    events = place.run(
        workers=2,
        memory="1MB",
        assign="0.9,0.1",
        strategy="relocate-only theta_r=0.9 tau_ms=0",
    )
    place.check()
    seen = steps(events)
    begun = [event for event in seen if event["step"] == "deactivate"]
    assert begun
    for first in begun:
        who = [first[name] for name in ("sender", "receiver", "space")]
        of_it = [e for e in seen if [e[n] for n in ("sender", "receiver", "space")] == who]
        names = [event["step"] for event in of_it]
        assert names[: len(Stage)] == [stage.value for stage in Stage]
    sent, received = (
        sum(event["rows"] for event in seen if event["step"] == step)
        for step in ("send", "receive")
    )
    assert sent == received > 0
    groups = [w["groups"] for w in [e for e in events if e["event"] == "batch"][-1]["workers"]]
    assert max(groups) < 0.8 * 32


def test_a_stopped_run_finishes_its_moves_when_it_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(tmp_path, ONE_KEY)
    for seed, files in enumerate([range(3), range(3, 5), range(5, FILES)]):
        place.arrive(files)
        run = place.start(workers=2 + seed % 2, memory="8KB", strategy=Hostile(seed))
        while run.progress.batches < 2 and not run.await_termination(0.01):
            pass
        run.stop()
    place.run(workers=2)
    place.check()


def failing_once(cluster: Any) -> Any:
    """Run the job of each batch, and lose its answers the first time."""
    failed = set[int]()

    def run(job: Any, orders: Orders) -> Any:
        done, batch = cluster.run(job, orders), orders.commit.batch
        if batch not in failed:
            failed.add(batch)
            raise TryAgain("the answers are lost")
        return done

    return InPlace(cluster, run=run)


@pytest.mark.parametrize("workload", [ONE_KEY, TREE], ids=lambda w: w.name)
def test_a_batch_that_is_planned_anew_in_any_stage_of_a_move_sends_rows_by_its_own_record(
    spark: SparkSession, tmp_path: Path, workload: Workload
) -> None:
    place = Place(tmp_path, workload)
    place.wrap = failing_once
    place.arrive(range(FILES))
    events = place.run(workers=3, strategy=Hostile(0))
    place.check()
    assert {event["step"] for event in steps(events)} == {stage.value for stage in Stage}
    assert count(events, "retried") == count(events, "batch")


@dataclass(frozen=True)
class AllAway:
    """Moves all of worker 0's groups to worker 1, once, after a batch."""

    batch: int

    def decide(self, snapshot: Snapshot, /) -> tuple[AllAway, tuple[Move, ...]]:
        if snapshot.batch != self.batch:
            return self, ()
        (space,) = snapshot.workers[0].tables
        groups = tuple(snapshot.workers[0].tables[space].group.tolist())
        return self, (Move(0, 1, space, groups, 0),)


def test_a_job_is_planned_by_its_own_plan_though_another_begins_meanwhile(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(tmp_path, replace(ONE_KEY, plan="((a b) c)"))
    place.arrive(range(FILES))
    late, changed = list[bool](), threading.Event()

    def preparing_late(cluster: Any) -> Any:
        shares: list[Any] = []

        def prepare(rows: Any, plan: JoinPlan, assignments: Any) -> Any:
            shares.append(assignments)
            has_moves = assignments != shares[0]
            is_ahead = threading.current_thread().name != "braid"  # the next one runs there
            if has_moves and is_ahead and changed.wait(PATIENCE_S):
                late.append(True)
            return cluster.prepare(rows, plan, assignments)

        return InPlace(cluster, prepare=prepare)

    def change_plan(event: Event) -> None:
        if isinstance(event, BatchDone) and event.batch == 2:
            run.migrate("(a b c)")
        if isinstance(event, Migrated):
            changed.set()

    place.wrap = preparing_late
    run = place.start(workers=2, strategy=AllAway(1), migration="moving-state")
    run.listen(change_plan)
    run.await_termination()
    place.check()
    assert late


def test_rows_that_wait_for_groups_do_not_wait_for_more_rows_to_come(
    spark: SparkSession, tmp_path: Path
) -> None:
    a, b = Folder(tmp_path / "a"), Folder(tmp_path / "b")
    query = braid.query(PAIRS, event_time="ts", a=a.stream(spark), b=b.stream(spark))
    sink = braid.sinks.memory()
    run = query.start(
        checkpoint=tmp_path / "checkpoint", sink=sink, workers=2, strategy=AllAway(0)
    )
    keys = range(20)
    a.add(*((k, 1, k) for k in keys))
    wait_until(lambda: len(steps(run.events())) == 1, run)
    b.add(*((k, 1, k) for k in keys))  # those of worker 0's groups have to wait
    wait_until(lambda: len(sink.rows()) == len(keys), run)
    run.stop()
    assert [step["step"] for step in steps(run.events())] == [stage.value for stage in Stage]
    shown = [e["output_rows"] for e in run.events() if e["event"] == "batch"]
    assert shown[0] == 0 < shown[1] < shown[1] + shown[2] == len(keys)


@dataclass
class Watching:
    """Moves nothing, and keeps the time of every snapshot."""

    times_ms: list[float]

    def decide(self, snapshot: Snapshot, /) -> tuple[Watching, tuple[Move, ...]]:
        self.times_ms.append(snapshot.elapsed_ms)
        return self, ()


def test_the_time_of_a_strategy_goes_on_while_no_rows_come(
    spark: SparkSession, tmp_path: Path
) -> None:
    a, b = Folder(tmp_path / "a"), Folder(tmp_path / "b")
    query = braid.query(PAIRS, event_time="ts", a=a.stream(spark), b=b.stream(spark))
    watching = Watching([])
    run = query.start(
        checkpoint=tmp_path / "checkpoint", sink=braid.sinks.memory(), strategy=watching
    )
    a.add((1, 1, 1))
    wait_until(lambda: len(watching.times_ms) == 1, run)
    quiet_s = 3
    time.sleep(quiet_s)
    b.add((1, 1, 1))
    wait_until(lambda: len(watching.times_ms) == 2, run)
    run.stop()
    first, second = watching.times_ms
    taken_ms = [e["elapsed_ms"] for e in run.events() if e["event"] == "batch"]
    assert second - first >= 1000 * quiet_s + taken_ms[1] // 2


def with_shares(least: float, more: float = 0.0) -> Callable[[Any], Any]:
    """Let each worker join so much, and the ones behind it more."""

    def wrap(cluster: Any) -> Any:
        def run(job: Any, orders: Orders) -> Any:
            shares = (
                Share(least + more * worker) for worker in range(len(orders.worker_orders))
            )
            each = zip(orders.worker_orders, shares, strict=True)
            worker_orders = tuple(replace(own, share=share) for own, share in each)
            return cluster.run(job, replace(orders, worker_orders=worker_orders))

        return InPlace(cluster, run=run)

    return wrap


@pytest.mark.parametrize("as_frames", [False, True], ids=["folders", "frames"])
def test_rows_that_wait_for_busy_workers_do_not_wait_for_more_rows_to_come(
    spark: SparkSession, tmp_path: Path, as_frames: bool
) -> None:
    a, b = Folder(tmp_path / "a"), Folder(tmp_path / "b")
    source = spark if as_frames else None
    keys = range(1000)
    for folder in (a, b):
        folder.add(*((k, 1, k) for k in keys))
    query = braid.query(PAIRS, event_time="ts", a=a.stream(source), b=b.stream(source))
    sink = braid.sinks.memory()
    run = with_cluster(query, with_shares(100)).start(
        checkpoint=tmp_path / "checkpoint",
        sink=sink,
        workers=2,
        skew_buffer=10_000,
        follow=not as_frames,
    )
    wait_until(lambda: len(sink.rows()) == len(keys), run)
    run.stop()
    first, *others = [e for e in run.events() if e["event"] == "batch"]
    assert first["output_rows"] < len(keys), "some have waited"
    assert not any(event["input_rows"] for event in others)


@pytest.mark.parametrize("workload", [ONE_KEY, TREE, GROUPS], ids=lambda w: w.name)
def test_results_are_exact_though_rows_wait_for_busy_workers(
    spark: SparkSession, tmp_path: Path, workload: Workload
) -> None:
    place = Place(tmp_path, workload)
    place.wrap = with_shares(100, 300)
    place.arrive(range(FILES))
    events = place.run(workers=2, skew_buffer=100)
    place.check()
    held = [event for event in events if event["event"] == "hold"]
    assert any(event["rows"] for event in held)
    full = [event["batch"] for event in held if event["waiting_rows"] > 100]
    rows = {e["batch"]: e["input_rows"] for e in events if e["event"] == "batch"}
    assert full, "the buffer was full at times"
    assert not any(rows[batch + 1] for batch in full), "and the sources waited"
