"""How a strategy ends: with the first plan that will do, or with the least bad one."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from braid.optimize.front import Front
from braid.optimize.neighbours import neighbours_of_best

if TYPE_CHECKING:
    from collections.abc import Iterable

    from braid.optimize.estimate import Estimator, Part
    from braid.optimize.plan import Budget, Plan

MOST_NEIGHBOURS = 50
"""Enough for nearly all that a strategy missed by one or two joins, and still quick."""


def first_qualified(estimator: Estimator, trees: Iterable[Part], budget: Budget) -> Plan:
    """The first tree that keeps the budgets; without any, the one that misses them least.

    The dissertation's strategies end with their own trees. Ours then look at some neighbours of
    the best of these.
    """

    def pressure(tree: Part) -> float:
        return budget.pressure(tree.cpu, tree.memory)

    front: Front[Part] = Front()
    # Streams' own states are in every plan: where they do not fit, nothing does.
    hopeless = estimator.least_memory > budget.memory
    most = 0 if hopeless else MOST_NEIGHBOURS
    more = islice(neighbours_of_best(estimator, front, pressure), most)
    for tree in chain(trees, more):
        if budget.allows(tree.cpu, tree.memory):
            return estimator.plan(tree, budget)
        front.add(tree)
    return estimator.plan(least_pressing(front, budget), budget)


def least_pressing(trees: Iterable[Part], budget: Budget) -> Part:
    """The tree that leaves most room below the budgets, or misses them least."""
    return min(trees, key=lambda t: (budget.pressure(t.cpu, t.memory), t.cpu, t.memory))
