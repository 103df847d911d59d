"""The skyline: all plans of which none is beaten in both CPU and memory, as far as time allows.

First the plans that both strategies come across, then their neighbours and those of whatever is
found to be better, and at last, for few streams, the whole space.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from braid.model.errors import BraidError
from braid.optimize.best_orders import best_orders
from braid.optimize.bjtree_init import shrinking_trees
from braid.optimize.cost_of import as_part
from braid.optimize.estimate import Estimator, Part
from braid.optimize.exhaustive import MOST_STREAMS, grow_fronts
from braid.optimize.front import Front
from braid.optimize.mjoin_ordering import order_inputs
from braid.optimize.neighbours import neighbours_of_best
from braid.optimize.plan import Budget, Plan
from braid.optimize.select_states import select_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from braid.model.join_graph import JoinGraph
    from braid.optimize.cost_model import CostModel


@dataclass(frozen=True, slots=True)
class Skyline:
    """Qualified plans, from the least CPU to the least memory.

    If `complete`, no plan exists that beats one of them, or that keeps the budgets if there are
    none. `seen` has CPU and memory of every plan that was looked at.
    """

    plans: tuple[Plan, ...]
    complete: bool
    seen: tuple[tuple[float, float], ...]


def skyline(
    graph: JoinGraph,
    *,
    cpu: float = math.inf,
    memory: float = math.inf,
    seconds: float = 1.0,
    cartesian: bool = True,
    model: CostModel | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Skyline:
    """The best plans within the budgets that are found in some time.

    What both strategies come across is always looked at, however short the time. The search of
    the whole space prices all joins before it asks for the time again, which takes a second or
    two for nine or ten streams.
    """
    if not seconds >= 0:
        raise BraidError(
            f"the exploration time is {seconds!r} seconds", hint="give 0 seconds or more"
        )
    end = clock() + seconds
    few = len(graph.streams) <= MOST_STREAMS
    orderer = best_orders if few else order_inputs
    estimator = Estimator(graph, model, cartesian=cartesian, orderer=orderer)
    budget = Budget(cpu, memory)
    front: Front[Part] = Front()
    seen = []
    for part in _visited(estimator, memory, front, in_time=lambda: clock() < end):
        seen.append((part.cpu, part.memory))
        front.add(part)
    complete = few and _add_all(estimator, budget, front, in_time=lambda: clock() < end)
    plans = (estimator.plan(part, budget) for part in front)
    return Skyline(tuple(plan for plan in plans if plan.qualified), complete, tuple(seen))


def _visited(
    estimator: Estimator, memory: float, front: Front[Part], in_time: Callable[[], bool]
) -> Iterator[Part]:
    """Plans of the strategies, then neighbours of all that are on the front by then."""
    yield from select_states(estimator, memory)
    yield from shrinking_trees(estimator)
    for neighbour in neighbours_of_best(estimator, front, key=attrgetter("cpu")):
        if not in_time():
            return
        yield neighbour


def _add_all(
    estimator: Estimator, budget: Budget, front: Front[Part], in_time: Callable[[], bool]
) -> bool:
    """Add the best plans of the whole space; False if there is no time for that."""
    if not in_time():
        return False
    whole: Front[Part] = Front()
    for whole in grow_fronts(estimator, budget):  # noqa: B007  # the last one is of all streams
        if not in_time():
            return False
    for part in whole:
        # Priced anew: a sum in another order must not make two plans of one.
        front.add(as_part(estimator, part.tree))
    return True
