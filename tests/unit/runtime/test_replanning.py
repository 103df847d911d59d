"""Who decides about plans, and what is asked for then."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from braid import cql
from braid.join.plan import make_plan
from braid.model.errors import BraidError
from braid.model.expression import Column
from braid.optimize.cost_model import IndexProbes
from braid.optimize.plan import Budget
from braid.optimize.timing import DataDriven, DataStatistics, Hysteresis, Measure, Situation
from braid.runtime import replanning
from braid.runtime.migration import Migration, Wish
from braid.runtime.observation import Observation
from braid.runtime.replanning import Party, Replanning, gathered, replanning_of
from braid.runtime.union import StreamUnion

STREAMS = ("a", "b", "c")
SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
ONE_KEY = "a.x = b.x AND b.x = c.x"
SAME_KEYS = f"{ONE_KEY} AND a.y = b.y AND b.y = c.y"
CHAIN = "a.x = b.x AND b.y = c.y"
ALSO = f"{ONE_KEY} AND a.y = b.y"


@pytest.fixture(autouse=True)
def _no_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replanning, "measure_costs", lambda **_: IndexProbes())


def parties(
    where: str, workers: int = 3, way: str = "auto", memory: int | None = 100
) -> list[tuple[tuple[int, ...], float]]:
    """Who decides together, and with how much memory."""
    made = made_for(where, workers, way, memory)
    return [(party.workers, party.advisor.budget.memory) for party in made.parties]


def made_for(
    where: str, workers: int, way: str, memory: int | None, cores: float = 2.0
) -> Replanning:
    froms = ", ".join(f"{name} [RANGE 2 SECONDS]" for name in STREAMS)
    text = f"SELECT a.x FROM {froms} WHERE {where}"
    query = cql.bind(text, dict.fromkeys(STREAMS, SCHEMA), event_time="ts")
    types = {Column(n, field.name): field.type for n in range(3) for field in SCHEMA}
    plan = make_plan(query, types, "ts", groups=8, lateness_us=0)
    union = StreamUnion.of(plan, dict.fromkeys(STREAMS, from_arrow_schema(SCHEMA)))
    migration, whole = Migration(plan, workers, 0.0, way), Observation(query)
    made = replanning_of(migration, union, whole, "exhaustive", "data", memory, cores)
    assert made is not None
    made.sampling.close()
    assert all((p.observation is whole) == (len(p.workers) == workers) for p in made.parties)
    return made


@pytest.mark.parametrize("where", [ONE_KEY, SAME_KEYS])
def test_under_one_key_each_worker_decides_by_itself_within_its_own_memory(where: str) -> None:
    assert parties(where) == [((0,), 100), ((1,), 100), ((2,), 100)]


@pytest.mark.parametrize("where", [CHAIN, ALSO])
def test_under_several_keys_all_decide_together(where: str) -> None:
    assert parties(where) == [((0, 1, 2), 300)]
    assert parties(where, memory=None) == [((0, 1, 2), math.inf)]


def test_a_parallel_track_is_for_all_or_none() -> None:
    assert parties(ONE_KEY, way="parallel-track") == [((0, 1, 2), 300)]
    assert len(parties(ONE_KEY, way="moving-state")) == 3


def test_who_wants_the_same_plan_gets_it_in_one_change() -> None:
    wishes = [
        Wish("P", reason="first", workers=(2,)),
        Wish("Q", reason="other", workers=(1,)),
        Wish("P", reason="second", workers=(0,)),
    ]
    assert gathered(wishes, range(4)) == [
        Wish("P", reason="first", workers=(0, 2)),
        Wish("Q", reason="other", workers=(1,)),
    ]
    assert gathered([], range(4)) == []


def test_a_change_of_all_who_have_groups_is_one_of_all() -> None:
    wishes = [Wish("P", workers=(0,)), Wish("P", workers=(1,))]
    assert gathered(wishes, {0, 1}) == [Wish("P")]
    assert gathered(wishes, {1}) == [Wish("P")]
    assert gathered(wishes, {0, 1, 2}) == [Wish("P", workers=(0, 1))]


def test_workers_share_the_cores_as_they_decide() -> None:
    apart, together = (
        made_for(where, 4, "auto", None, cores=2.0).parties for where in (ONE_KEY, CHAIN)
    )
    assert [party.cores for party in apart] == [0.5] * 4
    assert [party.cores for party in together] == [2.0]
    with pytest.raises(BraidError, match="the CPU budget is 0"):
        made_for(CHAIN, 4, "auto", None, cores=0)


def test_plans_are_measured_against_cores_by_what_is_seen_of_the_one_that_runs() -> None:
    (party,) = made_for(CHAIN, 2, "auto", None, cores=2.0).parties
    assert party.budget(foreseen=0.1).cpu == 2.0, "nothing has been seen yet"
    reports = [SimpleNamespace(worker=worker, busy_ms=250) for worker in (0, 1, 1, 7)]
    for _ in range(3):
        party.learn(reports, passed_s=1.5)  # type: ignore[arg-type]
    # Half a core is busy, where a fifth of one was foreseen.
    assert party.budget(foreseen=0.2).cpu == pytest.approx(2.0 / 2.5)
    assert party.budget(foreseen=0.0).cpu == pytest.approx(0.8), "as the last time"
    party.cores = math.inf
    assert party.budget(foreseen=0.2).cpu == math.inf


def learned(party: Party, busy_ms: int, passed_s: float, *, times: int = 1) -> None:
    for _ in range(times):
        party.learn([SimpleNamespace(worker=0, busy_ms=busy_ms)], passed_s)  # type: ignore[list-item]


def test_what_is_seen_of_one_plan_is_no_measure_of_the_next() -> None:
    made = made_for(CHAIN, 1, "auto", None, cores=2.0)
    (party,) = made.parties
    learned(party, 4000, 1.0, times=20)
    assert party.budget(foreseen=2.0).cpu == pytest.approx(1.0)
    told = SimpleNamespace(latest_us=0, change=None)
    first, other = (SimpleNamespace(texts=(text,), routes=()) for text in "ab")
    for plan in (first, other):
        made.learn(plan, told, told, [])  # type: ignore[arg-type]
    assert party.budget(foreseen=0.75).cpu == pytest.approx(1.0), "the ratio is of both"
    learned(party, 1500, 1.0)
    assert party.budget(foreseen=0.75).cpu == pytest.approx(1.0)


def test_a_jump_of_time_says_nothing_of_how_busy_workers_are() -> None:
    (party,) = made_for(CHAIN, 1, "auto", None, cores=2.0).parties
    learned(party, 1000, 1.0, times=3)
    for passed_s in (3e7, 0.0, -1.0):
        learned(party, 1000, passed_s)
        assert party.budget(foreseen=0.5).cpu == pytest.approx(1.0), passed_s


def test_a_change_may_take_a_part_of_the_cores_that_may_be_busy() -> None:
    for where, cores, each in ((CHAIN, 2.0, 2.0), (CHAIN, math.inf, 4.0), (ONE_KEY, 2.0, 0.5)):
        for party in made_for(where, 4, "auto", None, cores=cores).parties:
            assert party.advisor.quota is not None
            assert party.advisor.quota.cores == each


FEW_AND_MANY = {("a", "b"): Measure.exact(0.001), ("b", "c"): Measure.exact(0.5)}


def test_within_the_cores_the_optimizers_differ_and_without_a_budget_they_do_not() -> None:
    known = DataStatistics({name: Measure.exact(100.0) for name in STREAMS}, FEW_AND_MANY)
    (party,) = made_for(CHAIN, 1, "auto", None, cores=1e9).parties

    def found(optimizer: str, cores: float) -> str:
        advisor = replace(
            party.advisor,
            optimizer=optimizer,
            trigger=DataDriven(interval_ms=0, optimized_ms=0.0),
            hysteresis=Hysteresis(rest_ms=0),
            budget=Budget(cpu=cores),
            quota=None,
        )
        _, advice = advisor.advise(Situation(1, known), "((a c) b)")
        return "" if advice.plan is None else advice.plan.tree

    roomy = party.cores
    assert found("mjoin-init", roomy) == "(a b c)" != found("bjtree-init", roomy)
    assert found("mjoin-init", math.inf) == found("bjtree-init", math.inf)
