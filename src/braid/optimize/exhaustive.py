"""Exhaustive search over all trees of m-way joins, by dynamic programming from the bottom up.

Costs are sums over joins, and a join's share depends only on the streams that its inputs hold.
So of all trees over one set of streams, any that costs no less CPU and no less memory than
another can be left out: in every larger tree, the other would do as well. What remains of each
set is a front. And as costs only grow upwards, a tree that misses a budget can be part of none
that keeps it. Nothing else is left out, so if nothing is found, there is nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from braid.model.errors import BraidError
from braid.optimize.all_joins import price_joins
from braid.optimize.best_orders import best_orders
from braid.optimize.estimate import Estimator, Part
from braid.optimize.first_qualified import least_pressing
from braid.optimize.front import Front
from braid.optimize.plan import Budget, Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.model.join_graph import JoinGraph
    from braid.optimize.cost_model import CostModel

MOST_STREAMS = 10
"""Of ten streams there are over 600,000 joins, and of one more, six times as many."""


def exhaustive(
    graph: JoinGraph,
    *,
    cpu: float = math.inf,
    memory: float = math.inf,
    cartesian: bool = True,
    model: CostModel | None = None,
) -> Plan | None:
    """Of all plans that keep both budgets, the one that leaves most room; None if none does."""
    budget = Budget(cpu, memory)
    estimator = Estimator(graph, model, cartesian=cartesian, orderer=best_orders)
    *_, front = grow_fronts(estimator, budget)
    return estimator.plan(least_pressing(front, budget), budget) if len(front) else None


def grow_fronts(estimator: Estimator, budget: Budget) -> Iterator[Front[Part]]:
    """The front of each set of streams within the budgets; the last is that of all streams."""
    count = len(estimator.graph.streams)
    if count > MOST_STREAMS:
        raise BraidError(
            f"an exhaustive search over {count} streams would take too long",
            hint=f"use mjoin_init or bjtree_init for more than {MOST_STREAMS} streams",
        )
    search = _Search(estimator, budget)
    for streams in range(1, 1 << count):  # all subsets of a set come before it
        yield search.front(streams)


class _Search:
    """Fronts of sets of streams; those of a set's subsets must have been asked for before."""

    def __init__(self, estimator: Estimator, budget: Budget) -> None:
        self.budget = budget
        self.joins = price_joins(estimator)
        self.fronts: dict[int, Front[Part]] = {}
        sets = 1 << len(estimator.graph.streams)
        self.least_cpu, self.least_memory = np.full(sets, np.inf), np.full(sets, np.inf)
        for leaf in estimator.leaves():
            front: Front[Part] = Front()
            front.add(leaf)
            self._keep(leaf.streams, front)

    def front(self, streams: int) -> Front[Part]:
        if streams not in self.fronts:
            front: Front[Part] = Front()
            for least_cpu, least_memory, cpu, memory, inputs in self._candidates(streams):
                if not front.covers(least_cpu, least_memory):
                    below = [self.fronts[each] for each in inputs]
                    for part in self._joined(streams, cpu, memory, below):
                        front.add(part)
            self._keep(streams, front)
        return self.fronts[streams]

    def _candidates(self, streams: int) -> list[tuple[float, float, float, float, list[int]]]:
        """Joins of just these streams that may keep the budgets, the most promising first.

        For each: the least that trees under it cost in all, its own share, and its inputs.
        """
        found: list[tuple[float, float, float, float, list[int]]] = []
        for joins in self.joins:
            own = joins.of(streams)
            least_cpu = own.cpu + self.least_cpu[own.inputs].sum(axis=1)
            least_memory = own.memory + self.least_memory[own.inputs].sum(axis=1)
            possible = (least_cpu <= self.budget.cpu) & (least_memory <= self.budget.memory)
            possible &= np.isfinite(least_cpu)
            columns = (least_cpu, least_memory, own.cpu, own.memory, own.inputs)
            found += zip(*(column[possible].tolist() for column in columns), strict=True)
        return sorted(found)

    def _joined(
        self, streams: int, cpu: float, memory: float, below: Sequence[Front[Part]]
    ) -> Front[Part]:
        """The front of one join over all choices of trees for its inputs."""
        chosen: Front[Part] = Front()
        chosen.add(Part(streams, (), cpu, memory))
        for front in below:
            wider: Front[Part] = Front()
            for so_far in chosen:
                for part in front:
                    total = so_far.cpu + part.cpu, so_far.memory + part.memory
                    if self.budget.allows(*total):
                        wider.add(Part(streams, (*so_far.inputs, part), *total))
            chosen = wider
        return chosen

    def _keep(self, streams: int, front: Front[Part]) -> None:
        self.fronts[streams] = front
        self.least_cpu[streams] = min((part.cpu for part in front), default=math.inf)
        self.least_memory[streams] = min((part.memory for part in front), default=math.inf)
