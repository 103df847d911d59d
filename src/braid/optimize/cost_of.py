"""What a given plan would cost, as with the plan that runs now under new statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from braid.optimize.estimate import Estimator, Part
from braid.optimize.mjoin_ordering import order_inputs
from braid.optimize.plan import Budget, Plan
from braid.optimize.probe_orders import Ordered
from braid.plan.orders import parse_orders
from braid.plan.tree import Tree, leaves, parse_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.model.join_graph import JoinGraph
    from braid.optimize.cardinality import Cardinalities, Streams
    from braid.optimize.cost_model import CostModel


def cost_of(
    graph: JoinGraph,
    tree: str,
    orders: str = "",
    *,
    cpu: float = math.inf,
    memory: float = math.inf,
    cartesian: bool = True,
    model: CostModel | None = None,
) -> Plan:
    """A plan in the notation of `--plan` and `--order`; inputs without an order get a good one.

    >>> from braid.model.join_graph import JoinGraph
    >>> graph = JoinGraph({"a": 20, "b": 20}, {("a", "b"): 0.02}, window=15)
    >>> cost_of(graph, "(a b)").memory
    600.0
    """
    shape = parse_tree(tree, graph.streams)
    given = {
        _streams(origin): tuple(_streams(other) for other in others)
        for origin, others in parse_orders(orders, shape, graph.streams).items()
    }

    def ordered(sizes: Cardinalities, inputs: Sequence[Streams], cartesian: bool) -> Ordered:
        found = dict(order_inputs(sizes, inputs, cartesian).orders)
        found |= {origin: given[origin] for origin in inputs if origin in given}
        return Ordered.of(sizes, found)

    estimator = Estimator(graph, model, cartesian=cartesian, orderer=ordered)
    return estimator.plan(as_part(estimator, shape), Budget(cpu, memory))


def as_part(estimator: Estimator, tree: Tree) -> Part:
    """A tree with its costs."""
    if isinstance(tree, int):
        return Part(1 << tree)
    return estimator.join([as_part(estimator, child) for child in tree.children])


def _streams(tree: Tree) -> Streams:
    return sum(1 << stream for stream in leaves(tree))
