from __future__ import annotations

import pytest

from braid.experiment.zhu_optimizers import SETS
from braid.experiment.zhu_plans import BINARY, MJOIN, PLAN_SETS, PlanSet, plans_set
from tests.unit.experiment.making import outcome


@pytest.mark.parametrize("which", PLAN_SETS, ids=lambda each: f"set {each.number}")
def test_a_row_finds_the_matches_of_the_table_or_a_part_of_them(which: PlanSet) -> None:
    graph, streams = SETS[which.number], which.streams()
    assert streams.window_s == graph.window
    for rate, theirs in zip(streams.rates, graph.rates.values(), strict=True):
        assert rate == which.factor * theirs
    wanted_of = dict(graph.selectivity)
    wanted_of["b", "c"] *= which.matches
    for part, wanted in zip(streams.selectivities, wanted_of.values(), strict=True):
        assert part * which.factor == pytest.approx(wanted)


def test_state_is_compared_with_the_budget_once_windows_are_full() -> None:
    experiment = plans_set(PLAN_SETS[2])
    outcomes = {
        MJOIN: outcome([100] * 6, state_rows=(10, 20, 30, 40, 40, 40)),
        BINARY: outcome([900, *[50] * 5], state_rows=(10, 50, 100, 200, 200, 200)),
    }
    rows = {what: ours for what, ours, _ in experiment.compare(outcomes)}
    assert rows == {
        "rows in states, mjoin : binary tree": "1 : 5.00",
        "throughput, mjoin : binary tree": "1 : 2.00",
        "mjoin: state, at most, of the budget": "40%",
        "binary tree: state, at most, of the budget": "200%",
    }
