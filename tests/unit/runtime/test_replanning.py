"""Who decides about plans, and what is asked for then."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from braid import cql
from braid.join.plan import make_plan
from braid.model.expression import Column
from braid.optimize.cost_model import IndexProbes
from braid.runtime import replanning
from braid.runtime.migration import Migration, Wish
from braid.runtime.observation import Observation
from braid.runtime.replanning import gathered, replanning_of
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
    froms = ", ".join(f"{name} [RANGE 2 SECONDS]" for name in STREAMS)
    text = f"SELECT a.x FROM {froms} WHERE {where}"
    query = cql.bind(text, dict.fromkeys(STREAMS, SCHEMA), event_time="ts")
    types = {Column(n, field.name): field.type for n in range(3) for field in SCHEMA}
    plan = make_plan(query, types, "ts", groups=8, lateness_us=0)
    union = StreamUnion.of(plan, dict.fromkeys(STREAMS, from_arrow_schema(SCHEMA)))
    migration, whole = Migration(plan, workers, 0.0, way), Observation(query)
    made = replanning_of(migration, union, whole, "exhaustive", "data", memory)
    assert made is not None
    made.sampling.close()
    assert all((p.observation is whole) == (len(p.workers) == workers) for p in made.parties)
    return [(party.workers, party.advisor.budget.memory) for party in made.parties]


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
