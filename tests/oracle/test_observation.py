"""What a run measures of its streams, and what they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from braid.control.decider import BatchSeen
from braid.control.observation import Observation
from braid.optimize.timing.statistics import Certainty, DataStatistics, Measure
from braid.plan.keys import hash_of_key
from braid.record.next_commit import commit_before_first
from braid.record.plan_change import Way
from braid.state.groups import group_of
from tests.oracle.steady import CHAIN, CLIQUE, Steady
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from tests.driven import Driven

WINDOW_S, SECONDS = 8, 24


def seen_of(engine: Driven, before: Commit) -> BatchSeen:
    """The last batch of an engine."""
    return BatchSeen(before, engine.commit, engine.plan, engine.reports, 1000, 0)


def observed(
    streams: Steady, tree: str, seconds: int = SECONDS, other: str | None = None
) -> tuple[Observation, JoinPlan, Commit]:
    """A run that has measured the streams for a while, its plan, and its last record.

    Of two workers, one may have an `other` tree.
    """
    plan = streams.plan(dict.fromkeys(streams.keys, WINDOW_S), tree)
    observation, before = Observation(plan.query), commit_before_first(plan, workers=2)
    with quick_folder() as folder:
        for second, engine in enumerate(streams.run(plan, folder, seconds, workers=2)):
            observation = observation.observe(seen_of(engine, before))
            if second == 1 and other is not None:
                assert engine.change(other, Way.MOVING_STATE, [1])
            before = engine.commit
    return observation, plan, before


def measured(streams: Steady, tree: str) -> DataStatistics:
    """What is known of the streams after a while."""
    return observed(streams, tree)[0].statistics


@pytest.mark.parametrize("tree", ["(a b c d)", "(((a b) c) d)", "((a b) (c d))"])
def test_rates_and_selectivities_of_a_chain_are_what_they_are(tree: str) -> None:
    found = measured(CHAIN, tree)
    assert {name: rate.value for name, rate in found.rates.items()} == pytest.approx(
        CHAIN.rates, rel=0.05
    )
    true = {
        pair: 1 / CHAIN.values[key] for pair, key in zip(found.selectivity, "xyz", strict=True)
    }
    assert {pair: each.value for pair, each in found.selectivity.items()} == pytest.approx(
        true, rel=0.2
    )
    assert list(found.selectivity) == [("a", "b"), ("b", "c"), ("c", "d")]
    assert found.selectivity["a", "b"].certainty is Certainty.EXACT


def test_rates_are_known_from_the_second_batch_on() -> None:
    """How long the first batch's rows took to come, nobody knows."""
    known = [observed(CHAIN, "(a b c d)", seconds)[0].statistics.rates for seconds in (1, 2)]
    assert {rate.value for rate in known[0].values()} == {None}
    assert {name: rate.value for name, rate in known[1].items()} == pytest.approx(
        CHAIN.rates, rel=0.05
    )


def test_what_only_joined_rows_have_asked_for_is_an_estimate() -> None:
    found = measured(CHAIN, "(((a b) c) d)").selectivity
    assert found["c", "d"].certainty is Certainty.ESTIMATED


@pytest.mark.parametrize("other", [None, "((a c) (b d))"])
@pytest.mark.parametrize("tree", ["(a b c d)", "(((a b) c) d)"])
def test_pairs_of_one_key_are_all_known(tree: str, other: str | None) -> None:
    statistics = observed(CLIQUE, tree, other=other)[0].statistics
    assert {name: rate.value for name, rate in statistics.rates.items()} == pytest.approx(
        CLIQUE.rates, rel=0.05
    )
    found = statistics.selectivity
    assert len(found) == 6
    assert {pair: each.value for pair, each in found.items()} == pytest.approx(
        dict.fromkeys(found, 0.01), rel=0.3
    )


@pytest.mark.parametrize("tree", ["(a b c d)", "(((a b) c) d)"])
def test_a_worker_knows_its_own_rows_whichever_trees_they_go_through(tree: str) -> None:
    """The second worker has another tree, and then one of the first's groups as well."""
    plan = CLIQUE.plan(dict.fromkeys(CLIQUE.keys, WINDOW_S), tree)
    alone = [Observation(plan.query, frozenset({worker})) for worker in range(2)]
    before = None
    with quick_folder() as folder:
        for second, engine in enumerate(CLIQUE.run(plan, folder, 2 * SECONDS, workers=2)):
            if before is not None:
                seen = seen_of(engine, before)
                alone = [each.observe(seen) for each in alone]
            if second == 1:
                assert engine.change("((a c) (b d))", Way.MOVING_STATE, [1])
            if second == WINDOW_S:
                engine.move(0, ((0, 1),), 0, 1)
            for move in engine.commit.moves if second > WINDOW_S else ():
                engine.arrive(move, with_files=True)
            before = engine.commit
    assert before is not None, "there was some time"
    assert before.plan_of_group == (0, 0, 1, 1)
    assert before.assignments[0] == (1, 0, 1, 1)
    hashes = hash_of_key(pa.array(range(CLIQUE.values["x"]), pa.int64()))
    owners = np.array(before.assignments[0])[group_of(hashes, 4)]
    for worker, each in enumerate(alone):
        own, known = int((owners == worker).sum()), each.statistics
        assert {name: rate.value for name, rate in known.rates.items()} == pytest.approx(
            {name: rate * own / len(owners) for name, rate in CLIQUE.rates.items()}, rel=0.2
        )
        assert {pair: sel.value for pair, sel in known.selectivity.items()} == pytest.approx(
            dict.fromkeys(known.selectivity, 1 / own), rel=0.3
        )


def test_what_no_probe_tells_of_any_more_is_unknown_and_then_a_sample_counts() -> None:
    observation, plan, last = observed(CHAIN, "(a b c d)", 4)
    assert len(Observation(plan.query).unmeasured) == 3, "where nothing has come yet"
    pair = frozenset({0, 1})
    measured_now = observation.statistics.selectivity["a", "b"]
    seen = BatchSeen(last, last, plan, [], 1000, 0)
    observation = replace(observation, sampled={pair: 0.5})
    assert not observation.unmeasured
    assert observation.statistics.selectivity["a", "b"] == measured_now, "probes know better"
    for _ in range(20):
        observation = observation.observe(seen)
    assert pair in observation.unmeasured
    assert observation.statistics.selectivity["a", "b"] == Measure.estimated(0.5)
    assert observation.statistics.selectivity["b", "c"].certainty is Certainty.UNKNOWN
