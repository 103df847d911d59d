"""How often rows are kept and sent, as optimizers reckon and as the engine lays it out."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from braid.optimize import IndexProbes, NestedLoops, cost_of, exhaustive
from braid.optimize.arrangement import arrange
from braid.plan.tree import all_trees, joins, leaves, show_tree
from tests.oracle.random_plans import random_plans
from tests.oracle.steady import CHAIN, CLIQUE, Steady

STAR = Steady(
    keys={"a": ["x", "y", "z"], "b": ["x"], "c": ["y"], "d": ["z"]},
    values={"x": 400, "y": 300, "z": 100},
    rates={"a": 60, "b": 40, "c": 50, "d": 30},
    where="a.x = b.x AND a.y = c.y AND a.z = d.z",
)
MIXED = Steady(
    keys={"a": ["x"], "b": ["x"], "c": ["x", "y"], "d": ["y"]},
    values={"x": 400, "y": 300},
    rates={"a": 60, "b": 40, "c": 50, "d": 30},
    where="a.x = b.x AND b.x = c.x AND c.y = d.y",
)


def masks(streams: Steady) -> list[int]:
    """The streams of each key."""
    return [
        sum(1 << place for place, keys in enumerate(streams.keys.values()) if key in keys)
        for key in streams.values
    ]


@pytest.mark.parametrize("streams", [CHAIN, CLIQUE, STAR, MIXED])
def test_inputs_are_kept_as_often_as_the_engine_keeps_them(streams: Steady) -> None:
    for plan in random_plans(Random(1), streams, 10, values=(30, 1500)):
        rounds = streams.plan(plan.windows, plan.text).rounds
        (tree,) = rounds.trees
        states = Counter(frozenset(state.relation.streams) for state in rounds.states)
        for join in joins(tree):
            inputs = [sum(1 << stream for stream in leaves(child)) for child in join.children]
            kept = arrange(masks(streams), np.array([inputs])).kept[0]
            laid = [states[frozenset(leaves(child))] for child in join.children]
            assert kept.tolist() == laid, (plan.text, join)


def test_under_one_key_nothing_is_sent() -> None:
    inputs = np.array([[0b0011, 0b0100, 0b1000]])
    found = arrange([0b1111], inputs)
    assert found.sent.tolist() == [[0, 0, 0]]
    assert found.parted.tolist() == [False]


def test_over_a_chain_joined_inputs_are_sent_and_so_are_halves_of_an_mjoin() -> None:
    chain = [0b0011, 0b0110, 0b1100]
    pair = arrange(chain, np.array([[0b0011, 0b1100]]))
    assert (pair.sent.tolist(), pair.parted.tolist()) == ([[1, 1]], [False])
    mjoin = arrange(chain, np.array([[0b0001, 0b0010, 0b0100, 0b1000]]))
    assert (mjoin.sent.tolist(), mjoin.parted.tolist()) == ([[2, 2, 1, 0]], [True])


def test_over_a_chain_new_rows_come_along_as_the_engine_carries_them() -> None:
    for plan in random_plans(Random(1), CHAIN, 10, values=(30, 1500)):
        rounds = CHAIN.plan(plan.windows, plan.text).rounds
        carried = Counter(
            each.ports[port].relation.streams
            for each in rounds.rounds
            for port, _ in each.carried
        )
        for join in joins(rounds.trees[0]):
            inputs = [sum(1 << stream for stream in leaves(child)) for child in join.children]
            found = arrange(masks(CHAIN), np.array([inputs]))
            again = [isinstance(child, int) for child in join.children]
            along = found.sent[0] - found.kept[0] + again
            laid = [carried[leaves(child)] for child in join.children]
            assert along.tolist() == laid, (plan.text, join)


@pytest.mark.parametrize("streams", [CHAIN, STAR, MIXED])
@pytest.mark.parametrize("shuffle", [0, 5])
def test_the_exhaustive_search_finds_the_cheapest_of_all_trees(
    streams: Steady, shuffle: float
) -> None:
    graph, model = streams.graph(dict.fromkeys("abcd", 10)), IndexProbes(shuffle=shuffle)
    trees = [show_tree(tree, "abcd") for tree in all_trees(range(4))]
    plans = [cost_of(graph, tree, model=model) for tree in trees]
    best = exhaustive(graph, model=model)
    assert best is not None
    assert best.cpu == pytest.approx(min(plan.cpu for plan in plans))
    least = min(plan.memory for plan in plans)
    assert exhaustive(graph, memory=0.99 * least, model=model) is None
    smallest = exhaustive(graph, memory=1.01 * least, model=model)
    assert smallest is not None
    assert smallest.memory == pytest.approx(least)


def test_a_model_without_keys_keeps_all_once() -> None:
    graph = CHAIN.graph(dict.fromkeys("abcd", 10))
    plan = cost_of(graph, "(a b c d)", model=NestedLoops())
    assert plan.memory == 10 * sum(graph.rates.values())
