"""State-selection: from an m-way join to trees that keep more, and so compute less again.

Step by step, two inputs of the outermost join become a join of their own, whose results are
kept. Tried first are pairs that many orders probe one directly after the other and whose state
is small.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from braid.optimize.cardinality import Streams
    from braid.optimize.estimate import Estimator, Part

Pair = tuple["Part", "Part"]


def select_states(estimator: Estimator, memory: float) -> Iterator[Part]:
    """The m-way join of all streams, then ever quicker trees that fit into the memory.

    A pair whose state does not fit, or would save no CPU, is passed over; without any other, it
    is over. Where every input is kept once, nothing fits if the m-way join does not, as it has
    the least memory of all trees.
    """
    current = estimator.join(estimator.leaves())
    yield current
    while len(current.inputs) > 2:
        better = _improved(estimator, current, memory)
        if better is None:
            return
        current = better
        yield current


def _improved(estimator: Estimator, current: Part, memory: float) -> Part | None:
    """The tree with the first pair joined that fits and saves CPU, if there is one."""
    for one, other in _candidates(estimator, current):
        others = [part for part in current.inputs if part is not one and part is not other]
        if _memory_with(estimator, current, others, (one, other)) > memory:
            continue  # before the orders are looked for, which takes long
        tree = estimator.join([*others, estimator.join([one, other])])
        if tree.cpu < current.cpu:
            return _merged(estimator, tree, others, (one, other))
    return None


def _memory_with(estimator: Estimator, current: Part, others: list[Part], pair: Pair) -> float:
    """The memory of a tree once a pair of its inputs is joined."""
    one, other = (part.streams for part in pair)
    if not estimator.keys:  # asked for very often
        return current.memory + estimator.memory(one | other)
    left = tuple(part.streams for part in others)
    before = estimator.own_memory((*left, one, other))
    after = estimator.own_memory((*left, one | other)) + estimator.own_memory((one, other))
    return current.memory - before + after


def _merged(estimator: Estimator, tree: Part, others: list[Part], pair: Pair) -> Part:
    """The tree with what is below the new join dissolved in it, where that saves both."""
    inputs: list[Part] = list(pair)
    for child in pair:
        if child.inputs:
            wider = [part for part in inputs if part is not child] + list(child.inputs)
            candidate = estimator.join([*others, estimator.join(wider)])
            if candidate.cpu < tree.cpu and candidate.memory < tree.memory:
                tree, inputs = candidate, wider
    return tree


def _candidates(estimator: Estimator, current: Part) -> list[Pair]:
    """Pairs of inputs that have a predicate, or were probed one after the other without."""
    frequency = edge_frequency(
        estimator.ordered(tuple(part.streams for part in current.inputs)).orders
    )
    sizes = estimator.sizes

    def ratio(pair: Pair) -> float:
        one, other = (part.streams for part in pair)
        weight = estimator.memory(one | other)
        often = frequency.get(frozenset((one, other)), 0)
        return often / weight if weight else math.inf

    pairs = [
        (one, other)
        for one, other in combinations(current.inputs, 2)
        if sizes.neighbours(one.streams) & other.streams
        or (estimator.cartesian and frozenset((one.streams, other.streams)) in frequency)
    ]
    return sorted(pairs, key=ratio, reverse=True)


def edge_frequency(
    orders: Mapping[Streams, tuple[Streams, ...]],
) -> dict[frozenset[Streams], int]:
    """How many of some probe orders have two inputs directly after one another.

    Over a tree, every order crosses every edge at some time. Only where the two inputs follow
    one another could rows probe their common state in place of both.
    """
    frequency: dict[frozenset[Streams], int] = {}
    for origin, others in orders.items():
        for step in pairwise((origin, *others)):
            edge = frozenset(step)
            frequency[edge] = frequency.get(edge, 0) + 1
    return frequency
