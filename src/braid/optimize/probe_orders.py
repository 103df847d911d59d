"""Probe orders of one join, and how many rows they make; other files find the best ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from braid.optimize.cardinality import Cardinalities, Streams


@dataclass(frozen=True, slots=True)
class Ordered:
    """For each input of a join the others as it probes them, and what comes of it.

    Per unit of time, `rows` probe a state, and `matches` are found.
    """

    orders: Mapping[Streams, tuple[Streams, ...]]
    rows: float
    matches: float

    @classmethod
    def of(cls, sizes: Cardinalities, orders: Mapping[Streams, tuple[Streams, ...]]) -> Ordered:
        """Some orders, with the rows that they make."""
        probing = matching = 0.0
        for origin, order in orders.items():
            # In one turnover of its state, all of an input's rows come anew.
            turnover, between = sizes.turnover(origin), rows_between(sizes, origin, order)
            probing += turnover * (sizes.rows(origin) + between)
            matching += turnover * (between + sizes.rows(sum(order, origin)))
        return cls(orders, probing, matching)


def rows_between(sizes: Cardinalities, origin: Streams, order: Sequence[Streams]) -> float:
    """Rows that an order makes on the way from all of an input's rows to the results.

    These are all that an order can save: what comes first and last is the same for each.
    """
    known, rows = origin, 0.0
    for each in order[:-1]:
        known |= each
        rows += sizes.rows(known)
    return rows
