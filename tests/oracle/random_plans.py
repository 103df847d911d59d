"""Random plans over steady streams, and how alike two rankings of them are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from braid.optimize import IndexProbes, cost_of
from braid.plan.orders import show_orders
from braid.plan.tree import all_trees, joins, leaves, show_tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from braid.optimize import CostModel, Plan
    from braid.plan.tree import Tree
    from tests.oracle.steady import Steady

SHORTEST_S, LONGEST_S = 4, 8
"""Windows are of some batches, as rows go by batches: in shorter ones, sizes are up to luck."""

_MOST_OPERATIONS = 33
"""For each row: few plans need more, but then far more."""


@dataclass(frozen=True)
class Planned:
    """Streams with windows in seconds, and a tree with orders to join them by."""

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


def random_plans(
    chance: Random, base: Steady, count: int, values: tuple[int, int], scale: int = 1
) -> list[Planned]:
    """Plans whose costs differ by some times: keys have few `values` or many.

    With a `scale` there are more rows and values, so that a row finds as much as without.
    """
    plans: list[Planned] = []
    while len(plans) < count:
        plan = _random_plan(chance, base, values, scale)
        most = _MOST_OPERATIONS * sum(plan.streams.rates.values())
        if plan.costs(IndexProbes()).cpu < most:
            plans.append(plan)
    return plans


def _random_plan(chance: Random, base: Steady, values: tuple[int, int], scale: int) -> Planned:
    """Any tree and orders without a product."""
    few, many = values
    streams = replace(
        base,
        values={key: int(scale * few * (many / few) ** chance.random()) for key in base.values},
        rates={name: scale * rate for name, rate in base.rates.items()},
    )
    windows = {name: chance.randint(SHORTEST_S, LONGEST_S) for name in base.keys}
    aliases, keys = list(base.keys), list(base.keys.values())
    trees = all_trees(range(len(keys)))
    tree = chance.choice([tree for tree in trees if _has_no_product(tree, keys)])
    orders = show_orders(_random_orders(chance, tree, keys), aliases)
    return Planned(streams, windows, show_tree(tree, aliases), orders)


def _random_orders(
    chance: Random, tree: Tree, keys: Sequence[Sequence[str]]
) -> dict[Tree, tuple[Tree, ...]]:
    """For each input of a join of several the others, each by a key of one that is known."""
    orders: dict[Tree, tuple[Tree, ...]] = {}
    for join in joins(tree):
        for origin in join.children if len(join.children) > 2 else ():
            known = [origin]
            while len(known) < len(join.children):
                left = [child for child in join.children if child not in known]
                known.append(chance.choice([n for n in left if _meets(n, known, keys)]))
            orders[origin] = tuple(known[1:])
    return orders


def _has_no_product(tree: Tree, keys: Sequence[Sequence[str]]) -> bool:
    return all(
        _meets(child, [other for other in join.children if other != child], keys)
        for join in joins(tree)
        for child in join.children
    )


def _meets(node: Tree, others: Sequence[Tree], keys: Sequence[Sequence[str]]) -> bool:
    """Whether a node has a key in common with one of the others."""
    theirs = {key for other in others for stream in leaves(other) for key in keys[stream]}
    return any(key in theirs for stream in leaves(node) for key in keys[stream])


def rank_correlation(ones: Sequence[float], others: Sequence[float]) -> float:
    """Spearman's: 1 if two rankings are the same, -1 if one is the other turned round.

    >>> rank_correlation([1, 2, 30], [10, 21, 22])
    1.0
    """
    ranks = [np.argsort(np.argsort(each)) for each in (ones, others)]
    return float(np.corrcoef(*ranks)[0, 1])
