"""Trees that differ by one join, and a walk among those that are best so far."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from braid.optimize.remove_states import dissolve_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from braid.optimize.estimate import Estimator, Part
    from braid.optimize.front import Front


def neighbours_of_best(
    estimator: Estimator, front: Front[Part], key: Callable[[Part], float]
) -> Iterator[Part]:
    """The neighbours of all trees on a front, beginning with the tree of the least key.

    Whoever asks adds what is found to the front. It is over when all have been visited.
    """
    visited = set()
    while left := [part for part in front if part.tree not in visited]:
        tree = min(left, key=key)
        visited.add(tree.tree)
        yield from neighbours(estimator, tree)


def neighbours(estimator: Estimator, tree: Part) -> Iterator[Part]:
    """Trees with one join less, or with one more."""
    yield from dissolve_each(estimator, tree)
    yield from join_each_pair(estimator, tree)


def join_each_pair(estimator: Estimator, tree: Part) -> Iterator[Part]:
    """The tree with any two inputs of one of its m-way joins joined before the others."""
    for pair in combinations(tree.inputs, 2):
        one, other = (part.streams for part in pair)
        joined = estimator.cartesian or estimator.sizes.neighbours(one) & other
        if joined and len(tree.inputs) > 2:
            others = [part for part in tree.inputs if part not in pair]
            yield estimator.join([*others, estimator.join(pair)])
    for child in tree.inputs:
        others = [part for part in tree.inputs if part is not child]
        for changed in join_each_pair(estimator, child):
            yield estimator.join([*others, changed])
