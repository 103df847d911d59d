"""State-removal: from a tree of binary joins to trees that keep less, and compute it again.

Step by step, a join is dissolved in the one above it, and its state is no longer kept: the one
that costs least CPU for the memory that it frees. It may cost less than nothing, where a state
was dearer to keep than to compute again.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.optimize.estimate import Estimator, Part


def remove_states(estimator: Estimator, tree: Part) -> Iterator[Part]:
    """The tree itself, then ever smaller ones; the last is the m-way join of all streams."""
    yield tree
    while any(part.inputs for part in tree.inputs):
        tree = min(dissolve_each(estimator, tree), key=partial(_ratio, tree))
        yield tree


def _ratio(tree: Part, smaller: Part) -> float:
    """The CPU that a dissolved join costs, for each unit of memory that it frees."""
    increase, freed = smaller.cpu - tree.cpu, tree.memory - smaller.memory
    if freed > 0:
        return increase / freed
    return -math.inf if increase < 0 == freed else math.inf


def dissolve_each(estimator: Estimator, tree: Part) -> Iterator[Part]:
    """The tree with any one of its inner joins dissolved in the join above it."""
    for child in tree.inputs:
        if child.inputs:
            others = [part for part in tree.inputs if part is not child]
            yield estimator.join([*others, *child.inputs])
            for smaller in dissolve_each(estimator, child):
                yield estimator.join([*others, smaller])
