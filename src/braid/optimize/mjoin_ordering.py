"""Probe orders of an m-way join: for each input, whom its rows probe first, and whom then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.optimize.best_orders import best_orders
from braid.optimize.cardinality import Cardinalities, Streams, members
from braid.optimize.order_by_rank import order_by_rank
from braid.optimize.probe_orders import Ordered
from braid.optimize.spanning_tree import is_acyclic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.model.join_graph import JoinGraph

FEW_INPUTS = 8
"""For so many inputs, trying all orders takes no longer than ranking them."""


def mjoin_ordering(graph: JoinGraph, *, cartesian: bool = True) -> dict[str, tuple[str, ...]]:
    """For each stream the order in which it should probe the others, in one m-way join.

    Optimal over all orders for few streams, and over those without Cartesian products for any
    number of streams if their graph is acyclic. All else is NP-complete, and gets a good order.

    >>> from braid.model.join_graph import JoinGraph
    >>> pairs = {("a", "b"): 0.02, ("b", "c"): 0.5}
    >>> graph = JoinGraph({"a": 20, "b": 20, "c": 50}, pairs, window=15)
    >>> mjoin_ordering(graph)
    {'a': ('b', 'c'), 'b': ('a', 'c'), 'c': ('b', 'a')}
    """
    inputs = [1 << number for number in range(len(graph.streams))]
    ordered = order_inputs(Cardinalities(graph), inputs, cartesian)

    def name(stream: Streams) -> str:
        return graph.streams[next(members(stream))]

    return {
        name(origin): tuple(name(other) for other in others)
        for origin, others in ordered.orders.items()
    }


def order_inputs(sizes: Cardinalities, inputs: Sequence[Streams], cartesian: bool) -> Ordered:
    """Order the probes of a join whose inputs are streams or other joins' results."""
    if len(inputs) == 2:
        one, other = inputs
        return Ordered.of(sizes, {one: (other,), other: (one,)})
    if len(inputs) <= FEW_INPUTS and (cartesian or not is_acyclic(sizes, inputs)):
        return best_orders(sizes, inputs, cartesian)
    return order_by_rank(sizes, inputs, cartesian)
