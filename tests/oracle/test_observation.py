"""What a run measures of its streams, and what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from braid.migrate import Way
from braid.optimize.timing.statistics import Certainty, DataStatistics, Measure
from braid.runtime.observation import Observation
from tests.oracle.steady import CHAIN, CLIQUE, Steady
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from braid.join.plan import JoinPlan
    from braid.state.commit import Commit

WINDOW_S, SECONDS = 8, 24


def observed(
    streams: Steady, tree: str, seconds: int = SECONDS, other: str | None = None
) -> tuple[Observation, JoinPlan, Commit]:
    """A run that has measured the streams for a while, its plan, and its last record.

    Of two workers, one may have an `other` tree.
    """
    plan = streams.plan(dict.fromkeys(streams.keys, WINDOW_S), tree)
    observation, before = Observation(plan.query), None
    with quick_folder() as folder:
        for second, engine in enumerate(streams.run(plan, folder, seconds, workers=2)):
            if before is not None:
                observation.after(engine.plan, before, engine.commit, engine.reports)
            if second == 1 and other is not None:
                assert engine.change(other, Way.MOVING_STATE, [1])
            before = engine.commit
    assert before is not None, "there was some time"
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


def test_what_no_probe_tells_of_any_more_is_unknown_and_then_a_sample_counts() -> None:
    observation, plan, last = observed(CHAIN, "(a b c d)", 4)
    assert len(Observation(plan.query).unmeasured) == 3, "where nothing has come yet"
    pair = frozenset({0, 1})
    measured_now = observation.statistics.selectivity["a", "b"]
    observation.note_sample(pair, 0.5)
    assert not observation.unmeasured
    assert observation.statistics.selectivity["a", "b"] == measured_now, "probes know better"
    for _ in range(20):
        observation.after(plan, last, last, [])
    assert pair in observation.unmeasured
    assert observation.statistics.selectivity["a", "b"] == Measure.estimated(0.5)
    assert observation.statistics.selectivity["b", "c"].certainty is Certainty.UNKNOWN
