"""Who decides about plans, and what is asked for then."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from braid import cql
from braid.control.decider import BatchSeen
from braid.control.migration import Migration, PlanChangeRequest
from braid.control.observation import Observation
from braid.control.replanning import PlanningUnit, Replanning, merge_requests, replanning_of
from braid.model.errors import BraidError
from braid.model.expression import Column
from braid.optimize.cost_model import IndexProbes
from braid.optimize.plan import Budget
from braid.optimize.timing import DataDriven, DataStatistics, Hysteresis, Measure, Situation
from braid.plan.join_plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

STREAMS = ("a", "b", "c")
SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
ONE_KEY = "a.x = b.x AND b.x = c.x"
SAME_KEYS = f"{ONE_KEY} AND a.y = b.y AND b.y = c.y"
CHAIN = "a.x = b.x AND b.y = c.y"
ALSO = f"{ONE_KEY} AND a.y = b.y"


def units(
    where: str, workers: int = 3, way: str = "auto", memory: int | None = 100
) -> list[tuple[tuple[int, ...], float]]:
    """Who decides together, and with how much memory."""
    made = made_for(where, workers, way, memory)
    return [(unit.workers, unit.advisor.budget.memory) for unit in made.units]


def made_for(
    where: str, workers: int, way: str, memory: int | None, cores: float = 2.0
) -> Replanning:
    froms = ", ".join(f"{name} [RANGE 2 SECONDS]" for name in STREAMS)
    text = f"SELECT a.x FROM {froms} WHERE {where}"
    query = cql.bind(text, dict.fromkeys(STREAMS, SCHEMA), event_time="ts")
    types = {Column(n, field.name): field.type for n in range(3) for field in SCHEMA}
    plan = make_plan(query, types, "ts", groups=8, lateness_us=0)
    migration, whole = Migration(workers, 0.0, way), Observation(query)
    made = replanning_of(
        plan, migration, IndexProbes, whole, "exhaustive", "data", memory, cores
    )
    assert made is not None
    assert all((p.observation is whole) == (len(p.workers) == workers) for p in made.units)
    return made


@pytest.mark.parametrize("where", [ONE_KEY, SAME_KEYS])
def test_under_one_key_each_worker_decides_by_itself_within_its_own_memory(where: str) -> None:
    assert units(where) == [((0,), 100), ((1,), 100), ((2,), 100)]


@pytest.mark.parametrize("where", [CHAIN, ALSO])
def test_under_several_keys_all_decide_together(where: str) -> None:
    assert units(where) == [((0, 1, 2), 300)]
    assert units(where, memory=None) == [((0, 1, 2), math.inf)]


def test_a_parallel_track_is_for_all_or_none() -> None:
    assert units(ONE_KEY, way="parallel-track") == [((0, 1, 2), 300)]
    assert len(units(ONE_KEY, way="moving-state")) == 3


def test_who_wants_the_same_plan_gets_it_in_one_change() -> None:
    requests = [
        PlanChangeRequest("P", reason="first", workers=(2,)),
        PlanChangeRequest("Q", reason="other", workers=(1,)),
        PlanChangeRequest("P", reason="second", workers=(0,)),
    ]
    assert merge_requests(requests, range(4)) == [
        PlanChangeRequest("P", reason="first", workers=(0, 2)),
        PlanChangeRequest("Q", reason="other", workers=(1,)),
    ]
    assert merge_requests([], range(4)) == []


def test_a_change_of_all_who_have_groups_is_one_of_all() -> None:
    requests = [PlanChangeRequest("P", workers=(0,)), PlanChangeRequest("P", workers=(1,))]
    assert merge_requests(requests, {0, 1}) == [PlanChangeRequest("P")]
    assert merge_requests(requests, {1}) == [PlanChangeRequest("P")]
    assert merge_requests(requests, {0, 1, 2}) == [PlanChangeRequest("P", workers=(0, 1))]


def test_workers_share_the_cores_as_they_decide() -> None:
    apart, together = (
        made_for(where, 4, "auto", None, cores=2.0).units for where in (ONE_KEY, CHAIN)
    )
    assert [unit.cores for unit in apart] == [0.5] * 4
    assert [unit.cores for unit in together] == [2.0]
    with pytest.raises(BraidError, match="the CPU budget is 0"):
        made_for(CHAIN, 4, "auto", None, cores=0)


def test_plans_are_measured_against_cores_by_what_is_seen_of_the_one_that_runs() -> None:
    (unit,) = made_for(CHAIN, 2, "auto", None, cores=2.0).units
    assert unit.measured(foreseen=0.1).budget.cpu == 2.0, "nothing has been seen yet"
    reports = [SimpleNamespace(worker=worker, busy_ms=250) for worker in (0, 1, 1, 7)]
    for _ in range(3):
        unit = unit.learned(seen(reports, passed_s=1.5))
    # Half a core is busy, where a fifth of one was foreseen.
    unit = unit.measured(foreseen=0.2)
    assert unit.budget.cpu == pytest.approx(2.0 / 2.5)
    assert unit.measured(foreseen=0.0).budget.cpu == pytest.approx(0.8), "as the last time"
    assert replace(unit, cores=math.inf).measured(foreseen=0.2).budget.cpu == math.inf


def seen(reports: Sequence[Any], passed_s: float, plan: Any = None) -> BatchSeen:
    """A batch in which event time went on by so much."""
    told = SimpleNamespace(latest_us=0, change=None, workers=1)
    after = SimpleNamespace(latest_us=round(passed_s * 1e6), workers=1)
    return BatchSeen(*cast("Any", (told, after, plan, reports)), 0, 0)


def learned(
    unit: PlanningUnit, busy_ms: int, passed_s: float, *, times: int = 1
) -> PlanningUnit:
    for _ in range(times):
        unit = unit.learned(seen([SimpleNamespace(worker=0, busy_ms=busy_ms)], passed_s))
    return unit


def test_what_is_seen_of_one_plan_is_no_measure_of_the_next() -> None:
    made = made_for(CHAIN, 1, "auto", None, cores=2.0)
    (unit,) = made.units
    unit = learned(unit, 4000, 1.0, times=20).measured(foreseen=2.0)
    assert unit.budget.cpu == pytest.approx(1.0)
    made = replace(made, units=(unit,))
    first, other = (SimpleNamespace(texts=(text,), routes=()) for text in "ab")
    for plan in (first, other):
        made = made.learned(seen([], 0.0, plan), unit.observation)
    (unit,) = made.units
    assert unit.measured(foreseen=0.75).budget.cpu == pytest.approx(1.0), "of both"
    unit = learned(unit, 1500, 1.0)
    assert unit.measured(foreseen=0.75).budget.cpu == pytest.approx(1.0)


def test_a_jump_of_time_says_nothing_of_how_busy_workers_are() -> None:
    (unit,) = made_for(CHAIN, 1, "auto", None, cores=2.0).units
    unit = learned(unit, 1000, 1.0, times=3)
    for passed_s in (3e7, 0.0, -1.0):
        unit = learned(unit, 1000, passed_s)
        assert unit.measured(foreseen=0.5).budget.cpu == pytest.approx(1.0), passed_s


def test_a_change_may_take_a_part_of_the_cores_that_may_be_busy() -> None:
    for where, cores, each in ((CHAIN, 2.0, 2.0), (CHAIN, math.inf, 4.0), (ONE_KEY, 2.0, 0.5)):
        for unit in made_for(where, 4, "auto", None, cores=cores).units:
            assert unit.advisor.quota is not None
            assert unit.advisor.quota.cores == each


FEW_AND_MANY = {("a", "b"): Measure.exact(0.001), ("b", "c"): Measure.exact(0.5)}


def test_within_the_cores_the_optimizers_differ_and_without_a_budget_they_do_not() -> None:
    known = DataStatistics({name: Measure.exact(100.0) for name in STREAMS}, FEW_AND_MANY)
    (unit,) = made_for(CHAIN, 1, "auto", None, cores=1e9).units

    def found(optimizer: str, cores: float) -> str:
        advisor = replace(
            unit.advisor,
            optimizer=optimizer,
            trigger=DataDriven(interval_ms=0, optimized_ms=0.0),
            hysteresis=Hysteresis(rest_ms=0),
            budget=Budget(cpu=cores),
            quota=None,
        )
        _, advice = advisor.advise(Situation(1, known), "((a c) b)")
        return "" if advice.plan is None else advice.plan.tree

    roomy = unit.cores
    assert found("mjoin-init", roomy) == "(a b c)" != found("bjtree-init", roomy)
    assert found("mjoin-init", math.inf) == found("bjtree-init", math.inf)
