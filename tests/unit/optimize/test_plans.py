"""What strategies answer, and what they refuse."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import braid
from braid import BraidError, JoinGraph
from braid.optimize import (
    IndexProbes,
    NestedLoops,
    bjtree_init,
    cost_of,
    exhaustive,
    min_state,
    mjoin_init,
    mjoin_ordering,
    skyline,
)
from braid.plan.orders import parse_orders
from braid.plan.tree import parse_tree
from tests.unit.optimize.reference import random_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.optimize import Plan

CHAIN = JoinGraph({"a": 20, "b": 20, "c": 50}, {("a", "b"): 0.02, ("b", "c"): 0.5}, 15.0)
SEARCHES: tuple[Callable[..., Plan | None], ...] = (
    mjoin_init,
    bjtree_init,
    min_state,
    exhaustive,
)


def test_the_public_names_are_there() -> None:
    assert braid.JoinGraph is JoinGraph
    assert braid.optimize.mjoin_init is mjoin_init


@pytest.mark.parametrize("search", SEARCHES)
def test_without_budgets_every_plan_is_qualified(search: Callable[..., Plan | None]) -> None:
    plan = search(CHAIN)
    assert plan is not None
    assert plan.qualified


def test_mjoin_init_keeps_the_mjoin_if_it_will_do_and_else_adds_states() -> None:
    mjoin, tree = cost_of(CHAIN, "(a b c)"), cost_of(CHAIN, "((a b) c)")
    assert mjoin_init(CHAIN, cpu=mjoin.cpu).tree == "(a b c)"
    assert mjoin_init(CHAIN, cpu=tree.cpu).tree == "((a b) c)"


def test_bjtree_init_keeps_the_binary_tree_if_it_will_do_and_else_drops_states() -> None:
    mjoin, tree = cost_of(CHAIN, "(a b c)"), cost_of(CHAIN, "((a b) c)")
    assert bjtree_init(CHAIN, memory=tree.memory).tree == "((a b) c)"
    assert bjtree_init(CHAIN, memory=mjoin.memory).tree == "(a b c)"


@pytest.mark.parametrize("strategy", [mjoin_init, bjtree_init])
def test_a_strategy_that_finds_nothing_gives_the_plan_that_misses_the_budgets_least(
    strategy: Callable[..., Plan],
) -> None:
    trees = ("(a b c)", "((a b) c)", "(a (b c))", "((a c) b)")
    for cpu, memory in ((1.0, math.inf), (1000.0, 2000.0)):
        plan = strategy(CHAIN, cpu=cpu, memory=memory)
        assert not plan.qualified
        misses = [
            max(each.cpu / cpu, each.memory / memory)
            for each in (cost_of(CHAIN, tree) for tree in trees)
        ]
        assert max(plan.cpu / cpu, plan.memory / memory) == pytest.approx(min(misses))


def test_where_not_even_the_streams_fit_there_is_still_a_plan() -> None:
    for strategy in (mjoin_init, bjtree_init, min_state):
        assert not strategy(CHAIN, memory=1.0).qualified


def test_exhaustive_gives_none_as_a_proof() -> None:
    least = cost_of(CHAIN, "(a b c)").memory
    assert exhaustive(CHAIN, memory=least) is not None
    assert exhaustive(CHAIN, memory=math.nextafter(least, 0)) is None
    assert exhaustive(CHAIN, cpu=0) is None


@pytest.mark.parametrize("search", [*SEARCHES, skyline])
@pytest.mark.parametrize("budget", [-1, math.nan, "5", None, True])
@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_a_budget_that_is_none_is_refused(
    search: Callable[..., Any], budget: Any, name: str
) -> None:
    with pytest.raises(BraidError) as caught:
        search(CHAIN, **{name: budget})
    assert "budget" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("model", [NestedLoops, IndexProbes])
@pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf])
def test_constants_that_are_no_costs_are_refused(model: type, cost: float) -> None:
    with pytest.raises(BraidError, match="insert"):
        model(insert=cost)


def test_too_many_streams_for_an_exhaustive_search_are_refused_with_the_cure() -> None:
    graph = random_graph(Random(1), 11)
    with pytest.raises(BraidError) as caught:
        exhaustive(graph)
    assert "11 streams" in caught.value.message
    assert "mjoin_init" in (caught.value.hint or "")


@pytest.mark.parametrize("streams", [2, 5, 9, 14])
def test_the_engine_reads_plans_and_orders_as_they_are_written(streams: int) -> None:
    graph = random_graph(Random(streams), streams)
    for plan in (mjoin_init(graph, cpu=1), bjtree_init(graph), min_state(graph)):
        shape = parse_tree(plan.tree, graph.streams)
        assert shape == plan.shape
        given = parse_orders(plan.orders, shape, graph.streams)
        assert given == {o: others for o, others in plan.probes.items() if len(others) > 1}


def test_names_that_need_quotes_are_quoted() -> None:
    graph = JoinGraph({"my a": 1, "b": 2, "c;": 3}, {("my a", "b"): 1, ("b", "c;"): 1}, 1.0)
    plan = mjoin_init(graph)
    assert cost_of(graph, plan.tree, plan.orders).cpu == plan.cpu
    assert plan.tree == "(`my a` b `c;`)"


@pytest.mark.parametrize(
    ("tree", "orders", "told"),
    [
        ("(a b)", "", "lacks the stream 'c'"),
        ("(a b d)", "", "no stream"),
        ("(a b c)", "a: b", "each other input"),
    ],
)
def test_a_plan_for_other_streams_is_refused(tree: str, orders: str, told: str) -> None:
    with pytest.raises(BraidError, match=told):
        cost_of(CHAIN, tree, orders)


def test_orders_that_are_given_count_and_the_others_are_chosen() -> None:
    best = cost_of(CHAIN, "(a b c)")
    assert "b: a c" in best.orders
    worse = cost_of(CHAIN, "(a b c)", "b: c a")
    assert worse.cpu - best.cpu == pytest.approx(20 * (50 * 15 * 0.5 - 20 * 15 * 0.02))
    assert "a: b c" in worse.orders


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    "graph",
    [
        JoinGraph(
            {"a": 0, "b": 5, "c": 7, "d": 1},
            {("a", "b"): 0.5, ("b", "c"): 0.0, ("c", "d"): 1.0},
            1.0,
        ),
        JoinGraph({"a": 0, "b": 0}, {("a", "b"): 0}, 1.0),
        JoinGraph(
            {"a": 5, "b": 5, "c": 5},
            {("a", "b"): 0.0, ("b", "c"): 0.0, ("a", "c"): 0.0},
            2.0,
            keys=[("a", "b", "c")],
        ),
    ],
)
def test_streams_without_rows_and_predicates_without_matches_have_plans(
    search: Callable[..., Plan | None], graph: JoinGraph
) -> None:
    plan = search(graph, cpu=1e6, memory=1e6)
    assert plan is not None
    assert plan.qualified
    assert math.isfinite(plan.cpu)
    assert set(mjoin_ordering(graph)) == set(graph.rates)


def test_what_fruitless_probes_cost_decides_between_the_models() -> None:
    """Where nothing is found, nested loops have nothing to pay and an index still searches."""
    graph = JoinGraph({"a": 100, "b": 100, "c": 1}, {("a", "b"): 0, ("b", "c"): 1}, 1.0)
    loops, index = (
        cost_of(graph, "((a b) c)", model=m) for m in (NestedLoops(), IndexProbes())
    )
    kept = (100 + 100 + 1) * 2
    assert loops.cpu == pytest.approx(kept)
    assert index.cpu == pytest.approx(kept + 100 + 100 + 1)


class Steps:
    """A clock that goes on by one second whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_the_skyline_ends_when_its_time_is_over() -> None:
    graph = random_graph(Random(3), 9, more_pairs=0.2)
    short = skyline(graph, seconds=0)
    assert not short.complete
    assert short.plans
    cut = skyline(graph, seconds=20, clock=Steps())
    assert not cut.complete
    assert 0 < len(cut.seen) - len(short.seen) <= 20
    whole = skyline(graph, seconds=1e9)
    assert whole.complete
    for plan in short.plans:
        assert any(o.cpu <= plan.cpu and o.memory <= plan.memory for o in whole.plans)


def test_the_skyline_has_only_qualified_plans_each_better_than_the_others_in_one_way() -> None:
    graph = random_graph(Random(5), 6)
    everything = skyline(graph, seconds=1e9).plans
    assert len(everything) > 2
    middle = everything[len(everything) // 2]
    plans = skyline(graph, cpu=middle.cpu, memory=middle.memory, seconds=1e9).plans
    assert [plan.tree for plan in plans] == [middle.tree]
    costs = [(plan.cpu, plan.memory) for plan in everything]
    assert costs == sorted(costs)
    assert [m for _, m in costs] == sorted((m for _, m in costs), reverse=True)


@pytest.mark.parametrize("seconds", [-1, math.nan])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(BraidError, match="exploration time"):
        skyline(CHAIN, seconds=seconds)


def test_equal_graphs_have_equal_plans() -> None:
    for seed in range(4):
        graphs = [random_graph(Random(seed), 6, more_pairs=0.3) for _ in range(2)]
        for search in SEARCHES:
            first, second = (search(graph, cpu=1e4, memory=1e4) for graph in graphs)
            assert first == second
