"""What a change of plan is foreseen to cost, by hand and by the model."""

from __future__ import annotations

import pytest

from braid import JoinGraph
from braid.control.change_cost import ChangeCost, Circumstances, cost_of_change, costs_of_plans
from braid.optimize import IndexProbes, cost_of
from braid.record.next_commit import commit_before_first
from braid.record.plan_change import Start, Way, begun
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
    assert cost.making == cost.takes == pytest.approx((3.0 + 2.0) * (pairs + triples) + leaves)


def test_searching_costs_each_row_that_probes_for_them() -> None:
    change = start("((a (b c)) d)", Way.MOVING_STATE)
    searching = IndexProbes(insert=0.0, purge=0.0, search=1.0, match=0.0, shuffle=0.0)
    renewed = WINDOW / 2  # b with c; what a makes of these, both trees have
    expected = renewed * (RATES["b"] + RATES["c"])
    assert cost_of_change(change, GRAPH, searching).takes == pytest.approx(expected)


def test_what_is_fed_is_shuffled_before_it_is_kept() -> None:
    change = start("(a (b (c d)))", Way.MOVING_STATE)
    inserting = IndexProbes(insert=1.0, purge=0.0, search=0.0, match=0.0, shuffle=0.0)
    both = IndexProbes(insert=1.0, purge=0.0, search=0.0, match=0.0, shuffle=1.0)
    kept = cost_of_change(change, GRAPH, inserting).takes
    assert kept > 0
    assert cost_of_change(change, GRAPH, both).takes == pytest.approx(2 * kept)


MATCHING = IndexProbes(insert=0.0, purge=0.0, search=0.0, match=1.0, shuffle=0.0)
SENDING = IndexProbes(insert=0.0, purge=0.0, search=0.0, match=0.0, shuffle=1.0)
ALL_ROWS = sum(RATES.values())


def cpu(tree: str, costs: IndexProbes) -> float:
    return cost_of(GRAPH, tree, model=costs, cartesian=False).cpu


def test_the_parallel_track_costs_a_window_of_the_old_plan() -> None:
    new = "(a (b (c d)))"
    cost = cost_of_change(start(new, Way.PARALLEL_TRACK), GRAPH, MATCHING)
    assert cost.lasts == WINDOW
    # All of the new plan's joins have an empty state, and so half of their matches.
    saved = WINDOW / 2 * cpu(new, MATCHING)
    assert cost.takes == pytest.approx(WINDOW * cpu(OLD, MATCHING) - saved)


def test_while_the_parallel_track_lasts_all_rows_are_sent_twice() -> None:
    cost = cost_of_change(start("(a (b (c d)))", Way.PARALLEL_TRACK), GRAPH, SENDING)
    assert cost.takes == pytest.approx(WINDOW * (cpu(OLD, SENDING) + ALL_ROWS))


def test_the_parallel_track_waits_for_late_rows_and_for_streams_that_lag_behind() -> None:
    change = start("(a (b (c d)))", Way.PARALLEL_TRACK)
    later = Circumstances(lateness=2.0, skew=1.0)
    cost = cost_of_change(change, GRAPH, COSTS, later)
    assert cost.lasts == WINDOW + 3
    extra = cost.takes - cost_of_change(change, GRAPH, COSTS).takes
    assert extra == pytest.approx(3 * cpu(OLD, COSTS))


def test_moving_state_costs_the_old_plan_and_its_rows_for_as_long_as_it_lasts() -> None:
    change = start("(a (b (c d)))", Way.MOVING_STATE)
    making = cost_of_change(change, GRAPH, SENDING).making
    slow = Circumstances(filling=lambda made: 7.0 if made == making else 0.0)
    cost = cost_of_change(change, GRAPH, SENDING, slow)
    assert (cost.making, cost.lasts) == (making, 7.0)
    assert cost.takes == pytest.approx(making + 7 * (cpu(OLD, SENDING) + ALL_ROWS))


def test_what_goes_over_costs_nothing() -> None:
    change = start(f"{OLD}; a: b", Way.MOVING_STATE)
    assert not change.fresh
    assert cost_of_change(change, GRAPH, COSTS) == ChangeCost(0, 0, 0)


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
