"""Random plans over a chain of streams, and how alike two rankings of them are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from braid.optimize import IndexProbes, cost_of
from braid.plan.orders import show_orders
from braid.plan.tree import all_trees, joins, leaves, show_tree
from tests.oracle.steady import CHAIN, Steady

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from braid.optimize import CostModel, Plan
    from braid.plan.tree import Tree

LONGEST_S = 6
"""The longest window."""

_MOST_OPERATIONS = 6000
"""A second, which the streams' 180 rows make: few plans need more, but then far more."""


@dataclass(frozen=True)
class Planned:
    """Streams in a chain with windows in seconds, and a tree with orders to join them by."""

    streams: Steady
    windows: dict[str, int]
    tree: str
    orders: str

    @property
    def text(self) -> str:
        """Tree and orders, as the engine takes them."""
        return f"{self.tree}; {self.orders}" if self.orders else self.tree

    def costs(self, model: CostModel) -> Plan:
        """What a model says of the plan, per second."""
        graph = self.streams.graph(self.windows)
        return cost_of(graph, self.tree, self.orders, model=model, cartesian=False)


def random_plans(chance: Random, count: int, scale: int = 1) -> list[Planned]:
    """Plans whose costs differ by ten times or so.

    With a `scale` there are more rows and values, so that a row finds as much as without.
    """
    plans: list[Planned] = []
    while len(plans) < count:
        plan = _random_plan(chance, scale)
        if plan.costs(IndexProbes()).cpu < _MOST_OPERATIONS * scale:
            plans.append(plan)
    return plans


def _random_plan(chance: Random, scale: int) -> Planned:
    """Keys of few and of many values, and any tree and orders without a product."""
    streams = replace(
        CHAIN,
        values={key: int(scale * 30 * 50 ** chance.random()) for key in CHAIN.values},
        rates={name: scale * rate for name, rate in CHAIN.rates.items()},
    )
    windows = {name: chance.randint(2, LONGEST_S) for name in CHAIN.keys}
    tree, aliases = chance.choice(TREES), list(CHAIN.keys)
    orders = show_orders(_random_orders(chance, tree), aliases)
    return Planned(streams, windows, show_tree(tree, aliases), orders)


def _random_orders(chance: Random, tree: Tree) -> dict[Tree, tuple[Tree, ...]]:
    """For each input of a join of several the others, each beside one that is known."""
    orders: dict[Tree, tuple[Tree, ...]] = {}
    for join in joins(tree):
        for origin in join.children if len(join.children) > 2 else ():
            known = [origin]
            while len(known) < len(join.children):
                near = [n for n in join.children if n not in known and _touches(n, known)]
                known.append(chance.choice(near))
            orders[origin] = tuple(known[1:])
    return orders


def _touches(node: Tree, others: Sequence[Tree]) -> bool:
    """Whether a stream of a node is the neighbour of another's in the chain."""
    near = {
        place for other in others for leaf in leaves(other) for place in (leaf - 1, leaf + 1)
    }
    return not near.isdisjoint(leaves(node))


def _has_no_product(tree: Tree) -> bool:
    return all(max(leaves(j)) - min(leaves(j)) < len(leaves(j)) for j in joins(tree))


TREES = [tree for tree in all_trees(range(len(CHAIN.keys))) if _has_no_product(tree)]


def rank_correlation(ones: Sequence[float], others: Sequence[float]) -> float:
    """Spearman's: 1 if two rankings are the same, -1 if one is the other turned round.

    >>> rank_correlation([1, 2, 30], [10, 21, 22])
    1.0
    """
    ranks = [np.argsort(np.argsort(each)) for each in (ones, others)]
    return float(np.corrcoef(*ranks)[0, 1])
