"""What a run measures of its streams, and what they are."""

from __future__ import annotations

import pytest

from braid.optimize.timing.statistics import Certainty, DataStatistics, Measure
from braid.runtime.observation import Observation
from tests.oracle.steady import CHAIN, CLIQUE, Steady
from tests.unit.state.making import quick_folder

WINDOW_S, SECONDS = 8, 24


def measured(streams: Steady, tree: str) -> DataStatistics:
    """What is known of the streams after a while."""
    plan = streams.plan(dict.fromkeys(streams.keys, WINDOW_S), tree)
    observation = Observation(plan.query)
    with quick_folder() as folder:
        before = None
        for engine in streams.run(plan, folder, SECONDS):
            if before is not None:
                observation.after(plan, before, engine.commit, engine.reports)
            before = engine.commit
    return observation.statistics


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


def test_what_only_joined_rows_have_asked_for_is_an_estimate() -> None:
    found = measured(CHAIN, "(((a b) c) d)").selectivity
    assert found["c", "d"].certainty is Certainty.ESTIMATED


@pytest.mark.parametrize("tree", ["(a b c d)", "(((a b) c) d)"])
def test_pairs_of_one_key_are_all_known(tree: str) -> None:
    found = measured(CLIQUE, tree).selectivity
    assert len(found) == 6
    assert {pair: each.value for pair, each in found.items()} == pytest.approx(
        dict.fromkeys(found, 0.01), rel=0.3
    )


def test_what_no_probe_tells_of_any_more_is_unknown_and_then_a_sample_counts() -> None:
    plan = CHAIN.plan(dict.fromkeys(CHAIN.keys, WINDOW_S), "(a b c d)")
    observation = Observation(plan.query)
    assert len(observation.unmeasured) == 3, "nothing has come yet"
    with quick_folder() as folder:
        before = None
        for engine in CHAIN.run(plan, folder, 4):
            if before is not None:
                observation.after(plan, before, engine.commit, engine.reports)
            before = engine.commit
    pair = frozenset({0, 1})
    measured_now = observation.statistics.selectivity["a", "b"]
    observation.note_sample(pair, 0.5)
    assert not observation.unmeasured
    assert observation.statistics.selectivity["a", "b"] == measured_now, "probes know better"
    assert before is not None
    for _ in range(20):
        observation.after(plan, before, before, [])
    assert pair in observation.unmeasured
    assert observation.statistics.selectivity["a", "b"] == Measure.estimated(0.5)
    assert observation.statistics.selectivity["b", "c"].certainty is Certainty.UNKNOWN
