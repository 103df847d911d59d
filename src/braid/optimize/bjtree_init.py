"""The strategy bjtree-init: begin with binary joins, and drop states until all fits.

It tends to plans with little CPU and much memory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from braid.optimize.estimate import Estimator, Part
from braid.optimize.first_qualified import first_qualified
from braid.optimize.min_state import join_lightest, small_states
from braid.optimize.plan import Budget, Plan
from braid.optimize.remove_states import remove_states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.model.join_graph import JoinGraph
    from braid.optimize.cost_model import CostModel


def bjtree_init(
    graph: JoinGraph,
    *,
    cpu: float = math.inf,
    memory: float = math.inf,
    cartesian: bool = True,
    model: CostModel | None = None,
) -> Plan:
    """The first plan on the way that keeps both budgets; else the one that misses them least.

    As with `mjoin_init`, a plan that is not qualified does not prove that there is none.
    """
    estimator = Estimator(graph, model, cartesian=cartesian)
    return first_qualified(estimator, shrinking_trees(estimator), Budget(cpu, memory))


def shrinking_trees(estimator: Estimator) -> Iterator[Part]:
    """From the greedy tree down to the m-way join; the same from the smallest tree of all.

    The smallest tree is not the better beginning: to save a little memory it may join what has
    no predicate, and spend much CPU.
    """
    greedy = join_lightest(estimator, cartesian=estimator.cartesian)
    yield from remove_states(estimator, greedy)
    smallest = small_states(estimator)
    if smallest.tree != greedy.tree:
        yield from remove_states(estimator, smallest)
