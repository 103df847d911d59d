"""The strategy mjoin-init: begin with the m-way join, and keep states until it is quick enough.

It tends to plans with little memory and much CPU.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from braid.optimize.estimate import Estimator
from braid.optimize.first_qualified import first_qualified
from braid.optimize.plan import Budget, Plan
from braid.optimize.select_states import select_states

if TYPE_CHECKING:
    from braid.model.join_graph import JoinGraph
    from braid.optimize.cost_model import CostModel


def mjoin_init(
    graph: JoinGraph,
    *,
    cpu: float = math.inf,
    memory: float = math.inf,
    cartesian: bool = True,
    model: CostModel | None = None,
) -> Plan:
    """The first plan on the way that keeps both budgets; else the one that misses them least.

    It takes polynomial time and proves nothing: a plan that is not qualified means that none
    was found. `exhaustive` can tell whether there is one.
    """
    budget = Budget(cpu, memory)
    estimator = Estimator(graph, model, cartesian=cartesian)
    return first_qualified(estimator, select_states(estimator, memory), budget)
