"""Probe orders from ranks, for joins of any size and graphs of any form.

Over an acyclic graph they are optimal. Where the graph has cycles, or Cartesian products are
allowed, they are the optimal ones for a minimum spanning tree of it. Such a tree ignores all
other predicates, so then neighbours in an order trade places as long as that saves rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.optimize.probe_orders import Ordered, rows_between
from braid.optimize.rank_orders import rank_orders
from braid.optimize.spanning_tree import Edges, connect, is_acyclic, spanning_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.optimize.cardinality import Cardinalities, Streams

    Order = tuple[Streams, ...]

_CLEARLY = 1 - 1e-12  # less, and not by rounding alone


def order_by_rank(sizes: Cardinalities, inputs: Sequence[Streams], cartesian: bool) -> Ordered:
    """Orders for a join whose inputs are streams or other joins' results.

    A tree with Cartesian products may lead to more rows than one without, though it weighs
    less. So each input has the better of the two orders that they give.
    """
    best: dict[Streams, tuple[float, Order]] = {}
    for tree in _trees(sizes, inputs, cartesian):
        for origin, order in rank_orders(tree, sizes.growth).items():
            rows = rows_between(sizes, origin, order)
            if origin not in best or rows < best[origin][0]:
                best[origin] = rows, order
    orders = {origin: best[origin][1] for origin in inputs}
    if cartesian or not is_acyclic(sizes, inputs):
        orders = {
            origin: _traded(sizes, origin, order, cartesian) for origin, order in orders.items()
        }
    return Ordered.of(sizes, orders)


def _trees(sizes: Cardinalities, inputs: Sequence[Streams], cartesian: bool) -> Iterator[Edges]:
    """A tree without products, if there is one; and the one with them, if it has any."""
    connected = connect(sizes, inputs)
    if connected:
        yield spanning_tree(sizes, inputs, cartesian=False)
    if cartesian or not connected:
        tree = spanning_tree(sizes, inputs, cartesian=True)
        if not connected or _has_product(sizes, tree):
            yield tree


def _has_product(sizes: Cardinalities, tree: Edges) -> bool:
    return any(
        not sizes.neighbours(one) & other for one, others in tree.items() for other in others
    )


def _traded(sizes: Cardinalities, origin: Streams, order: Order, cartesian: bool) -> Order:
    """An order in which no two neighbours would do better in each other's places.

    All that changes when they trade is how many rows there are between the two.
    """
    traded, place, known = list(order), 0, [origin]
    while place + 1 < len(traded):
        before, one, other = known[-1], traded[place], traded[place + 1]
        fewer = sizes.rows(before | other) < sizes.rows(before | one) * _CLEARLY
        if fewer and (cartesian or _may_trade(sizes, before, one, other)):
            traded[place : place + 2] = other, one
            if place:  # what came forward may go further
                place -= 1
                known.pop()
        else:
            known.append(before | one)
            place += 1
    return tuple(traded)


def _may_trade(sizes: Cardinalities, before: Streams, one: Streams, other: Streams) -> bool:
    """Whether each of two neighbours has a predicate with what would be known before it."""
    return bool(sizes.neighbours(before) & other and sizes.neighbours(before | other) & one)
