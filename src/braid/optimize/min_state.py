"""Min-state: a tree of binary joins with small intermediate states.

Of all pairs of inputs, join the one whose state is smallest, and go on with the result in their
place. Without Cartesian products this is optimal for stars: whatever is joined comes into the
centre, and makes all other edges heavier or lighter by the same factor. For few streams, all
binary trees are searched, as that takes no longer.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from braid.optimize.estimate import Estimator, Part
from braid.optimize.plan import Budget, Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.model.join_graph import JoinGraph
    from braid.optimize.cardinality import Streams
    from braid.optimize.cost_model import CostModel

FEW_STREAMS = 7


def min_state(
    graph: JoinGraph,
    *,
    cpu: float = math.inf,
    memory: float = math.inf,
    cartesian: bool = True,
    model: CostModel | None = None,
) -> Plan:
    """A tree of binary joins with small states; the budgets only decide if it is qualified."""
    estimator = Estimator(graph, model, cartesian=cartesian)
    return estimator.plan(small_states(estimator), Budget(cpu, memory))


def small_states(estimator: Estimator) -> Part:
    """The tree with the least memory that can be found quickly."""
    leaves = estimator.leaves()
    if len(leaves) <= FEW_STREAMS:
        return smallest_states(estimator)
    trees = [join_lightest(estimator, cartesian=False)]
    if estimator.cartesian:
        trees.append(join_lightest(estimator, cartesian=True))
    return min(trees, key=lambda tree: (tree.memory, tree.cpu))


def join_lightest(estimator: Estimator, *, cartesian: bool) -> Part:
    """The greedy tree: the pair with the smallest state is joined first."""
    sizes, parts = estimator.sizes, list(estimator.leaves())

    def weight(pair: tuple[Part, Part]) -> tuple[float, bool]:
        one, other = (part.streams for part in pair)
        product = not sizes.neighbours(one) & other
        barred = product and not cartesian
        return math.inf if barred else estimator.memory(one | other), product

    while len(parts) > 1:
        pair = min(combinations(parts, 2), key=weight)
        parts = [part for part in parts if part not in pair]
        parts.append(estimator.join(pair))
    return parts[0]


def smallest_states(estimator: Estimator) -> Part:
    """The binary tree with the least memory of all, by dynamic programming; 3^n steps."""
    sizes, best = estimator.sizes, {leaf.streams: leaf for leaf in estimator.leaves()}
    for streams in range(1, sizes.everything + 1):
        trees = [
            estimator.join((best[one], best[other]))
            for one, other in _splits(streams)
            if one in best and other in best
            if estimator.cartesian or sizes.neighbours(one) & other
        ]
        if trees:
            best[streams] = min(trees, key=lambda tree: (tree.memory, tree.cpu))
    return best[sizes.everything]


def _splits(streams: Streams) -> Iterator[tuple[Streams, Streams]]:
    """All ways to part a set of streams in two."""
    first = streams & -streams
    others = streams ^ first
    chosen = others
    while chosen:
        chosen = (chosen - 1) & others
        yield first | chosen, others ^ chosen
