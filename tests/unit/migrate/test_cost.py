"""What a change of plan is foreseen to cost, by hand and by the model."""

from __future__ import annotations

import pytest

from braid import JoinGraph
from braid.join.outcome import commit_before_first
from braid.migrate import Start, Way, begun, cost_of_change, costs_of_plans
from braid.optimize import IndexProbes, cost_of
from tests.oracle.steady import CHAIN

WINDOW = 5
RATES = {"a": 10.0, "b": 20.0, "c": 30.0, "d": 40.0}
AB, BC, CD = 0.1, 0.05, 0.02
GRAPH = JoinGraph(RATES, {("a", "b"): AB, ("b", "c"): BC, ("c", "d"): CD}, float(WINDOW))
OLD = "(((a b) c) d)"
COSTS = IndexProbes(insert=2.0, purge=0.0, search=0.0, match=3.0, shuffle=0.0)


def start(new: str, way: Way) -> Start:
    plan = CHAIN.plan(dict.fromkeys(RATES, WINDOW), OLD)
    return begun(commit_before_first(plan, 1), plan, new, way)


def test_moving_state_costs_what_making_the_missing_states_does() -> None:
    """All pairs in a window, and all triples: each is found, and inserted."""
    b, c, d = (RATES[name] * WINDOW for name in "bcd")
    pairs, triples = c * d * CD, b * c * d * BC * CD
    change = start("(a (b (c d)))", Way.MOVING_STATE)
    assert change.commit.change is not None
    assert change.commit.change.feeds
    # Streams are fed too: those that the old tree has by other keys, and one of each join.
    fed = [change.both.rounds.states[state].relation.streams for state in change.fresh]
    leaves = sum(
        2.0 * RATES["abcd"[streams[0]]] * WINDOW for streams in fed if len(streams) == 1
    )
    cost = cost_of_change(change, GRAPH, COSTS)
    assert cost == pytest.approx((3.0 + 2.0) * (pairs + triples) + leaves)


def test_searching_costs_each_row_that_probes_for_them() -> None:
    change = start("((a (b c)) d)", Way.MOVING_STATE)
    searching = IndexProbes(insert=0.0, purge=0.0, search=1.0, match=0.0, shuffle=0.0)
    renewed = WINDOW / 2  # b with c; what a makes of these, both trees have
    expected = renewed * (RATES["b"] + RATES["c"])
    assert cost_of_change(change, GRAPH, searching) == pytest.approx(expected)


def test_what_is_fed_is_shuffled_before_it_is_kept() -> None:
    change = start("(a (b (c d)))", Way.MOVING_STATE)
    inserting = IndexProbes(insert=1.0, purge=0.0, search=0.0, match=0.0, shuffle=0.0)
    both = IndexProbes(insert=1.0, purge=0.0, search=0.0, match=0.0, shuffle=1.0)
    kept = cost_of_change(change, GRAPH, inserting)
    assert kept > 0
    assert cost_of_change(change, GRAPH, both) == pytest.approx(2 * kept)


def test_the_parallel_track_costs_a_window_of_the_old_plan() -> None:
    change = start("(a (b (c d)))", Way.PARALLEL_TRACK)
    old = cost_of(GRAPH, OLD, model=COSTS, cartesian=False)
    assert cost_of_change(change, GRAPH, COSTS) == pytest.approx(WINDOW * old.cpu)


def test_what_goes_over_costs_nothing() -> None:
    change = start(f"{OLD}; a: b", Way.MOVING_STATE)
    assert not change.fresh
    assert cost_of_change(change, GRAPH, COSTS) == 0


@pytest.mark.parametrize("way", list(Way))
def test_both_plans_cost_what_they_cost_by_themselves(way: Way) -> None:
    new = "(a (b (c d)))"
    old_plan, new_plan = (
        cost_of(GRAPH, tree, model=COSTS, cartesian=False) for tree in (OLD, new)
    )
    found = costs_of_plans(start(new, way), GRAPH, COSTS)
    assert found == pytest.approx(
        {
            "cpu": old_plan.cpu,
            "rows": old_plan.memory,
            "new_cpu": new_plan.cpu,
            "new_rows": new_plan.memory,
        }
    )
