"""The best probe orders of a join, whatever its graph: dynamic programming over its inputs.

How many rows there are depends on which inputs are known, and not on the order in which they
became known. So what is still to come is the same for all origins, and is computed once for
each set of known inputs: 2^k sets of k inputs, with k steps each.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from braid.optimize.probe_orders import Ordered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.optimize.cardinality import Cardinalities, Streams


def best_orders(sizes: Cardinalities, inputs: Sequence[Streams], cartesian: bool) -> Ordered:
    """The optimal orders of a join's inputs; without products, if not `cartesian`."""
    following = _following(sizes, inputs, cartesian)
    everything = sum(inputs)
    orders = {}
    for origin in inputs:
        known, order = origin, []
        while known != everything:
            order.append(following[known])
            known |= order[-1]
        orders[origin] = tuple(order)
    return Ordered.of(sizes, orders)


def _following(
    sizes: Cardinalities, inputs: Sequence[Streams], cartesian: bool
) -> dict[Streams, Streams]:
    """Which input to probe next, by the streams of those that are known."""
    unions = [0]
    for each in inputs:
        unions += [union | each for union in unions]
    everything = unions[-1]
    made = {everything: 0.0}  # from here on, with those that are here
    following = {}
    for known in reversed(unions[1:-1]):  # all that contain a set come before it
        near = everything if cartesian else sizes.neighbours(known)
        least = math.inf
        for each in inputs:
            if each & near and not each & known:
                rows = made[known | each]
                if rows < least or known not in following:
                    least, following[known] = rows, each
        made[known] = sizes.rows(known) + least
    return following
