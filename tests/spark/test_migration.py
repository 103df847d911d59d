"""Plans that change while they run, through Spark: exact results, and every step to be seen."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.control.migration import WAYS
from braid.events import Migrated
from braid.model.errors import BraidError
from braid.plan.tree import all_trees, show_tree
from tests.oracle.steady import TS
from tests.oracle.test_plans_agree_with_duckdb import CAMPAIGN
from tests.spark.folders import date
from tests.spark.hostile import Hostile
from tests.spark.kill_workloads import GROUPS, ONE_KEY, STREAMS, TREE
from tests.spark.test_overflow import FILES, Place

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from braid.events import Event
    from tests.spark.kill_workloads import Workload

pytestmark = pytest.mark.spark

TREES = [show_tree(tree, STREAMS) for tree in all_trees(range(len(STREAMS)))]


def steps(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(e["step"], e["new"]) for e in events if e["event"] == "migrate"]


@pytest.mark.parametrize(
    ("workload", "way"),
    [
        (ONE_KEY, "moving-state"),
        (ONE_KEY, "parallel-track"),
        (TREE, "moving-state"),
        (GROUPS, "auto"),
    ],
    ids=lambda each: getattr(each, "name", each),
)
def test_results_are_exact_through_changes_of_plan(
    spark: SparkSession, tmp_path: Path, workload: Workload, way: str
) -> None:
    place = Place(tmp_path, workload)
    place.arrive(range(FILES))
    plans = ["2:(a (b c))", "4:(a b c)", "5:((a b) c)"]
    events = place.run(workers=2, migrate_at=plans, migration=way)
    place.check()
    seen = [step for step, _ in steps(events)]
    assert "start" in seen or workload is not ONE_KEY
    assert seen.count("end") <= seen.count("start")
    last = [event for event in events if event["event"] == "batch"][-1]
    assert [rate["stream"] for rate in last["rates"]] == ["a", "b", "c"]
    assert all(rate["rows_per_second"] > 0 for rate in last["rates"])
    assert all(0 < each["selectivity"] <= 1 for each in last["selectivities"])


@pytest.mark.parametrize("overflow", ["probe", "defer"])
def test_results_are_exact_though_groups_are_pushed_out_and_moved_in_between(
    spark: SparkSession, tmp_path: Path, overflow: str
) -> None:
    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(FILES))
    plans = ["2:(a (b c))", "5:((a c) b)"]
    events = place.run(
        workers=3, memory="16KB", overflow=overflow, strategy=Hostile(3), migrate_at=plans
    )
    place.check()
    assert "start" in [step for step, _ in steps(events)]


@pytest.mark.parametrize("seed", range(2 * CAMPAIGN))
def test_results_are_exact_through_random_changes_of_plan(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = Random(seed)
    workload = [ONE_KEY, TREE, GROUPS][seed % 3]
    first, *others = chance.sample(TREES, len(TREES))
    place = Place(tmp_path, replace(workload, plan=first))
    stop = chance.choice([FILES, FILES, 4])
    place.arrive(range(stop))
    seen = steps(place.run(**random_changes(chance, workload, others, range(stop))))
    assert "start" in [step for step, _ in seen]
    if stop < FILES:
        place.workload = workload  # without a plan: it goes on with the one that it came to
        place.arrive(range(stop, FILES))
        place.run(**random_changes(chance, workload, TREES, range(stop, FILES)))
    place.check()


def random_changes(
    chance: Random, workload: Workload, trees: list[str], batches: range
) -> dict[str, Any]:
    """Options of a run: one to three changes in some way, on some workers, in some need."""
    times = sorted(chance.sample(batches[:-1], chance.randint(1, min(3, len(batches) - 1))))
    plans = chance.sample(trees, len(times))
    workers = chance.randint(1, 3)
    way = chance.choice(WAYS)
    # Only where rows meet under one key are workers free to differ.
    may_differ = workload is ONE_KEY and way != "parallel-track"
    whose = ["", f"@{chance.randrange(workers)}" if may_differ else ""]
    changes = zip(times, plans, strict=True)
    options = {
        "workers": workers,
        "migrate_at": [f"{at}{chance.choice(whose)}:{plan}" for at, plan in changes],
        "migration": way,
        "migration_pause": chance.choice(["1 millisecond", "1 minute"]),
    }
    if chance.random() < 0.6:
        options["memory"] = chance.choice(["4KB", "16KB", "64KB"])
        options["overflow"] = chance.choice(["probe", "defer"])
        options["strategy"] = chance.choice([Hostile(chance.randrange(1000)), "spill-only"])
    return options


@pytest.mark.parametrize("workload", [ONE_KEY, TREE, GROUPS], ids=lambda w: w.name)
@pytest.mark.parametrize("is_streaming", [False, True], ids=["folders", "frames"])
def test_states_that_take_little_are_made_between_two_batches(
    spark: SparkSession, tmp_path: Path, workload: Workload, is_streaming: bool
) -> None:
    place = Place(tmp_path, workload, frames=spark if is_streaming else None)
    place.arrive(range(FILES))
    events = place.run(workers=2, migrate_at=["4:(a (b c))"], migration_pause="1 minute")
    place.check()
    start, end = [event for event in events if event["event"] == "migrate"]
    assert (start["step"], start["way"], end["step"]) == ("start", "moving-state", "end")
    (between,) = [
        event
        for event in events
        if event["event"] == "batch" and start["batch"] < event["batch"] <= end["batch"]
    ]
    assert between["input_rows"] == 0
    # Nothing new can come of no rows, but groups may be complete that waited.
    assert between["output_rows"] == 0 or workload.waits


def test_a_change_that_is_asked_for_during_another_comes_after_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(FILES))
    run = place.start(workers=2, migration="moving-state", migration_pause="1 minute")

    def ask_for_another(event: Event) -> None:
        if isinstance(event, Migrated) and (event.step, event.new) == ("start", "(a (b c))"):
            run.migrate("(a b c)")

    run.listen(ask_for_another)
    run.migrate("(a (b c))")
    run.await_termination()
    place.check()
    assert [step for step in steps(run.events()) if step[0] != "fill"] == [
        ("start", "(a (b c))"),
        ("end", "(a (b c))"),
        ("start", "(a b c)"),
        ("end", "(a b c)"),
    ]


def test_a_run_is_continued_with_the_plan_that_it_came_to(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(5))
    events = place.run(workers=2, migrate_at=["1:(a (b c))"], migration_pause="1 minute")
    assert steps(events)[-1] == ("end", "(a (b c))")
    place.arrive(range(5, FILES))
    events = place.run(workers=1, migrate_at=["1:(a (b c))"])
    assert steps(events) == [], "it is there already"
    assert next(e for e in events if e["event"] == "started")["plan"] == "(a (b c))"
    place.check()


def test_workers_may_have_plans_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(5))
    events = place.run(workers=2, migrate_at=["1@1:(a (b c))"], migration_pause="1 minute")
    ended = [event for event in events if event["event"] == "migrate"][-1]
    assert (ended["step"], ended["workers"]) == ("end", (1,))
    place.arrive(range(5, FILES))
    events = place.run(workers=3, migrate_at=["5:(a (b c))"], migration_pause="1 minute")
    assert next(e for e in events if e["event"] == "started")["plan"] == "(a b c) | (a (b c))"
    assert steps(events)[0] == ("start", "(a (b c))")
    place.check()
    with pytest.raises(BraidError, match="there is no worker 3"):
        place.run(workers=3, migrate_at=["7@3:(a b c)"])


@pytest.mark.parametrize("way", ["moving-state", "parallel-track"])
@pytest.mark.parametrize("workload", [ONE_KEY, TREE, GROUPS], ids=lambda w: w.name)
def test_plans_over_streaming_dataframes_change_as_well(
    spark: SparkSession, tmp_path: Path, workload: Workload, way: str
) -> None:
    place = Place(tmp_path, replace(workload, plan="(a b c)"), frames=spark)
    place.arrive(range(4))
    how = {"migration": way, "migration_pause": "1 minute"}
    events = place.run(workers=2, migrate_at=["1:((a b) c)"], **how)
    assert steps(events)[0] == ("start", "((a b) c)")
    place.workload = workload  # without a plan: Spark goes on by the one that it came to
    place.arrive(range(4, FILES))
    events = place.run(workers=3, migrate_at=["5:(a (b c))"], **how)
    assert next(e for e in events if e["event"] == "started")["plan"].endswith("((a b) c)")
    place.check()


def test_a_plan_of_many_streams_changes_to_another(spark: SparkSession, tmp_path: Path) -> None:
    """Two binary trees of 18 streams; here these are one, and each row joins itself."""
    names = [f"s{number}" for number in range(18)]
    trees = [reduce("({} {})".format, each) for each in (names, names[::-1])]
    (tmp_path / "e").mkdir()
    for number in range(6):
        rows = pa.table({"k": [1, 2, 3], "ts": pa.array([number * 1_000_000] * 3, TS)})
        pq.write_table(rows, tmp_path / "e" / f"{number}.parquet")
        date(tmp_path / "e" / f"{number}.parquet", number)
    froms = ", ".join(f"e {name} [RANGE 1 MILLISECOND]" for name in names)
    where = " AND ".join(f"s0.k = {name}.k" for name in names[1:])
    query = braid.query(
        f"SELECT s0.k, s17.ts FROM {froms} WHERE {where}",
        event_time="ts",
        e=braid.files(tmp_path / "e"),
    )
    run = query.start(
        checkpoint=tmp_path / "checkpoint",
        sink=braid.sinks.parquet(tmp_path / "out"),
        workers=2,
        groups=4,
        plan=trees[0],
        available_now=True,
        migrate_at=[f"2:{trees[1]}"],
        migration="moving-state",
        migration_pause="1 minute",
    )
    run.await_termination()
    seen = [step for step, _ in steps(run.events())]
    assert (seen[0], seen[-1]) == ("start", "end")
    paths = (tmp_path / "out").rglob("*.parquet")
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in paths) == 18
