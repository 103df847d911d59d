"""What always holds of plans, against brute force that shares no code with the optimizers."""

from __future__ import annotations

import math
import os
import re
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest

from braid.experiment.zhu_optimizers import share_found, try_strategies
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
from braid.optimize.bjtree_init import shrinking_trees
from braid.optimize.cardinality import Cardinalities
from braid.optimize.estimate import Estimator
from braid.optimize.min_state import join_lightest
from braid.optimize.order_by_rank import order_by_rank
from braid.optimize.select_states import select_states
from tests.unit.optimize.reference import (
    Reference,
    Tree,
    all_trees,
    binary_trees,
    names,
    pareto,
    random_graph,
    star,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


CAMPAIGN = int(os.environ.get("BRAID_CASES", "1"))
"""How many times as many cases as usual."""

STRATEGIES = (mjoin_init, bjtree_init, min_state)


def is_best(reference: Reference, origin: str, order: Sequence[str]) -> bool:
    others = [name for name in reference.rates if name != origin]
    least = reference.best_cascade(origin, others)
    return reference.cascade(origin, order) == pytest.approx(least)


@pytest.mark.parametrize("streams", [2, 3, 4, 5, 6, 7])
def test_ranks_order_the_probes_over_acyclic_graphs_as_well_as_brute_force(
    streams: int,
) -> None:
    for seed in range((120 if streams == 7 else 240) * CAMPAIGN):
        random = Random(f"ranks {streams} {seed}")
        graph = random_graph(random, streams, windows=seed % 2 == 1)
        inputs = [1 << number for number in range(streams)]
        found = order_by_rank(Cardinalities(graph), inputs, cartesian=False).orders
        for number, origin in enumerate(graph.streams):
            order = [graph.streams[each.bit_length() - 1] for each in found[1 << number]]
            assert is_best(Reference(graph, cartesian=False), origin, order), seed


@pytest.mark.parametrize("cartesian", [False, True])
@pytest.mark.parametrize("streams", [2, 3, 4, 5, 6])
def test_few_streams_have_the_best_of_all_orders_whatever_their_graph(
    streams: int, cartesian: bool
) -> None:
    for seed in range((10 if streams == 6 else 60) * CAMPAIGN):
        graph = random_graph(Random(f"orders {streams} {seed}"), streams, more_pairs=0.3)
        for origin, order in mjoin_ordering(graph, cartesian=cartesian).items():
            assert is_best(Reference(graph, cartesian=cartesian), origin, order), seed


def test_without_products_every_step_of_an_order_has_a_predicate() -> None:
    for seed in range(20 * CAMPAIGN):
        graph = random_graph(Random(f"steps {seed}"), 12, more_pairs=0.2)
        for origin, order in mjoin_ordering(graph, cartesian=False).items():
            assert sorted([origin, *order]) == sorted(graph.rates)
            for place, each in enumerate(order):
                assert Reference(graph).are_joined([origin, *order[:place]], [each])


def test_products_are_used_only_where_they_save_rows() -> None:
    saved = 0
    for seed in range(30 * CAMPAIGN):
        graph = random_graph(Random(f"products {seed}"), 10)
        without, allowed = mjoin_ordering(graph, cartesian=False), mjoin_ordering(graph)
        for origin in graph.rates:
            before = Reference(graph).cascade(origin, without[origin])
            after = Reference(graph).cascade(origin, allowed[origin])
            assert after <= before * (1 + 1e-9)
            saved += after < before * (1 - 1e-9)
    assert saved


@pytest.mark.parametrize("streams", [3, 4, 5, 6])
def test_the_greedy_min_state_is_optimal_for_stars_without_products(streams: int) -> None:
    trees = list(binary_trees([f"s{number}" for number in range(streams)]))
    linear = [tree for tree in trees if is_linear_star(tree)]
    assert len(linear) == math.factorial(streams - 1)
    for seed in range(130 * CAMPAIGN if streams < 6 else 110 * CAMPAIGN):
        graph = star(Random(f"stars {streams} {seed}"), streams)
        found = join_lightest(Estimator(graph, cartesian=False), cartesian=False)
        reference = Reference(graph)
        assert found.memory == pytest.approx(min(map(reference.memory, linear))), seed
        if streams < 6:  # brute force takes its time
            least = min(reference.costs(tree)[0] for tree in linear)
            assert found.cpu == pytest.approx(least), seed


def is_linear_star(tree: Tree) -> bool:
    """Whether no join of a tree is a product: all have the centre below them."""
    if isinstance(tree, str):
        return True
    inner = [child for child in tree if not isinstance(child, str)]
    return "s0" in names(tree) and all(is_linear_star(child) for child in inner)


@pytest.mark.parametrize(("streams", "stars"), [(3, 160), (4, 160), (5, 140), (6, 40)])
def test_min_state_has_the_least_memory_of_all_binary_trees_of_few_streams(
    streams: int, stars: int
) -> None:
    """Products and all; of stars, and of some other graphs."""
    trees = list(binary_trees([f"s{number}" for number in range(streams)]))
    for seed in range((stars + stars // 8) * CAMPAIGN):
        make = star if seed < stars * CAMPAIGN else random_graph
        graph = make(Random(f"small {streams} {seed}"), streams, windows=seed % 3 == 0)
        plan = min_state(graph)
        assert plan.is_binary
        assert plan.memory == pytest.approx(min(map(Reference(graph).memory, trees))), seed


@pytest.mark.parametrize("cartesian", [True, False])
@pytest.mark.parametrize("streams", [2, 3, 4, 5])
def test_the_exhaustive_search_finds_just_the_plans_that_nothing_beats(
    streams: int, cartesian: bool
) -> None:
    trees = list(all_trees([f"s{number}" for number in range(streams)]))
    for seed in range((2 if streams == 5 else 20) * CAMPAIGN):
        random = Random(f"all {streams} {seed}")
        graph = random_graph(random, streams, more_pairs=0.2, windows=seed % 2 == 1)
        weights = random.choice([(0.0, 1.0), (1.5, 0.5)])
        model = _model(*weights)
        reference = Reference(
            graph,
            search=weights[0],
            match=weights[1],
            cartesian=cartesian,
            lag=0.25 if weights[0] else None,
        )
        priced = [reference.costs(tree) for tree in trees]
        possible = [point for point in priced if point[0] < math.inf]
        found = skyline(graph, seconds=1e9, model=model, cartesian=cartesian)
        assert found.complete
        ours = [(plan.cpu, plan.memory) for plan in found.plans]
        theirs = pareto([(round_off(cpu), round_off(memory)) for cpu, memory in possible])
        assert [(round_off(cpu), round_off(memory)) for cpu, memory in ours] == theirs, seed


def _model(search: float, match: float) -> NestedLoops | IndexProbes:
    if search:
        return IndexProbes(insert=1.25, purge=0.75, search=search, match=match, lag=0.25)
    return NestedLoops(insert=0.5, delete=1.5, join=match)


def round_off(cost: float) -> float:
    """So that sums in another order are equal."""
    return float(f"{cost:.9g}")


@pytest.mark.parametrize("streams", [3, 4, 5])
def test_exhaustive_gives_none_just_where_no_plan_keeps_the_budgets(streams: int) -> None:
    trees = list(all_trees([f"s{number}" for number in range(streams)]))
    answers = set()
    for seed in range((3 if streams == 5 else 25) * CAMPAIGN):
        random = Random(f"none {streams} {seed}")
        graph = random_graph(random, streams)
        priced = [Reference(graph).costs(tree) for tree in trees]
        cpu = random.choice(priced)[0] * random.uniform(0.8, 1.2)
        memory = random.choice(priced)[1] * random.uniform(0.8, 1.2)
        plan = exhaustive(graph, cpu=cpu, memory=memory)
        fits = [point for point in priced if point[0] <= cpu and point[1] <= memory]
        assert (plan is not None) == bool(fits), seed
        if plan is not None:
            room = max(plan.cpu / cpu, plan.memory / memory)
            assert room == pytest.approx(min(max(c / cpu, m / memory) for c, m in fits))
            assert plan.qualified
        answers.add(plan is not None)
    assert answers == {True, False}


def test_both_strategies_find_nearly_all_qualified_plans_that_there_are() -> None:
    """On the dissertation's settings; `bench/optimizers.py` has all, and tighter budgets."""
    most_streams, count = (6, 50) if CAMPAIGN == 1 else (8, 100)
    found = try_strategies(lambda step: None, most_streams, count)
    possible = [sum(trials.qualified) for trials in found["exhaustive"].values()]
    assert all(count / 4 < each < count for each in possible), "neither none nor all"
    for name in ("mjoin-init", "bjtree-init"):
        assert share_found(found, name) >= 0.97, name


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("streams", [2, 4, 6, 13])
def test_what_a_strategy_says_of_its_plan_is_what_the_plan_costs(
    strategy: type, streams: int
) -> None:
    for seed in range(5 * CAMPAIGN):
        random = Random(f"said {streams} {seed}")
        graph = random_graph(random, streams, more_pairs=0.2, windows=True)
        leaves = sum(graph.rates[n] * graph.windows[n] for n in graph.rates)
        cpu, memory = random.uniform(0, 1e5), leaves * random.uniform(0.8, 2)
        plan = strategy(graph, cpu=cpu, memory=memory)
        again = cost_of(graph, plan.tree, plan.orders)
        assert (again.cpu, again.memory) == pytest.approx((plan.cpu, plan.memory))
        assert plan.qualified == (plan.cpu <= cpu and plan.memory <= memory)
        if streams <= 6:
            tree = as_tuples(plan.tree)
            assert (plan.cpu, plan.memory) == pytest.approx(Reference(graph).costs(tree))


def as_tuples(text: str) -> Tree:
    """A tree from its text."""
    nodes: list[list[Tree]] = [[]]
    for token in re.findall(r"[()]|[^() ]+", text):
        if token == "(":
            nodes.append([])
        elif token == ")":
            closed = tuple(nodes.pop())
            nodes[-1].append(closed)
        else:
            nodes[-1].append(token)
    return nodes[0][0]


def test_state_selection_saves_cpu_and_state_removal_saves_memory_at_every_step() -> None:
    for seed in range(20 * CAMPAIGN):
        graph = random_graph(Random(f"steps of {seed}"), 8, more_pairs=0.2)
        estimator = Estimator(graph)
        grown = list(select_states(estimator, math.inf))
        assert strictly_falling([tree.cpu for tree in grown])
        assert not any(part.inputs for part in grown[0].inputs)
        shrunk = list(shrinking_trees(estimator))
        assert not any(part.inputs for part in shrunk[-1].inputs)
        ends = [n for n, tree in enumerate(shrunk) if len(tree.inputs) == 8]
        assert strictly_falling([tree.memory for tree in shrunk[: ends[0] + 1]])


def strictly_falling(values: Sequence[float]) -> bool:
    return all(after < before for before, after in pairwise(values))
