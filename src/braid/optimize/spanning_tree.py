"""The tree of a join graph along which few rows are made: a minimum spanning tree."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.optimize.cardinality import Cardinalities, Streams

Edges = dict["Streams", list["Streams"]]
"""Every input's neighbours."""


def spanning_tree(sizes: Cardinalities, inputs: Sequence[Streams], cartesian: bool) -> Edges:
    """Neighbours in the lightest tree over a join's inputs; an edge weighs what its join keeps.

    For single streams with one window, that orders edges as the product of both rates with the
    selectivity does. Pairs without a predicate are edges too if `cartesian`; without them, the
    others must connect all inputs.
    """
    tree: Edges = {each: [] for each in inputs}
    reached = inputs[0]
    # For each input that is not in the tree: its lightest edge, products after predicates.
    edge = {
        other: (*_weight(sizes, reached, other, cartesian), reached) for other in inputs[1:]
    }
    while edge:
        reached = min(edge, key=lambda other: edge[other][:2])
        *_, known = edge.pop(reached)
        tree[known].append(reached)
        tree[reached].append(known)
        for other, lightest in edge.items():
            weight = _weight(sizes, reached, other, cartesian)
            if weight < lightest[:2]:
                edge[other] = (*weight, reached)
    return tree


def connect(sizes: Cardinalities, inputs: Sequence[Streams]) -> bool:
    """Whether predicates connect all of some sets of streams with one another."""
    reached, left = inputs[0], set(inputs[1:])
    while left:
        near = sizes.neighbours(reached)
        found = {each for each in left if each & near}
        if not found:
            return False
        left -= found
        for each in found:
            reached |= each
    return True


def is_acyclic(sizes: Cardinalities, inputs: Sequence[Streams]) -> bool:
    """Whether connected inputs have predicates along a tree only."""
    pairs = combinations(inputs, 2)
    return sum(bool(sizes.neighbours(one) & other) for one, other in pairs) < len(inputs)


def _weight(
    sizes: Cardinalities, one: Streams, other: Streams, cartesian: bool
) -> tuple[float, bool]:
    product = not sizes.neighbours(one) & other
    if product and not cartesian:
        return float("inf"), True
    return sizes.rows(one | other), product
