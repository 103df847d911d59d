"""Fifty events make a cycle: one person, then three auctions, then 46 bids.

Event numbers, people and auctions are counted from 0 here; the ids in the rows start higher.
Everything follows from an event's number by arithmetic, so nothing before it has to be drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from braid.workload.arrivals import Ints

CYCLE = 50
AUCTIONS = 3
PLACES = {"person": range(0, 1), "auction": range(1, 4), "bid": range(4, CYCLE)}
"""The places that each kind of event has in a cycle."""


def events_of(kind: str, first: int, last: int) -> Ints:
    """The numbers of a kind's events among `first:last`.

    >>> events_of("auction", 0, 53).tolist()
    [1, 2, 3, 51, 52]
    """
    first = max(0, first)
    cycles = np.arange(first // CYCLE, max(first, last - 1) // CYCLE + 1, dtype=np.int64)
    events: Ints = (cycles[:, None] * CYCLE + np.asarray(PLACES[kind])).ravel()
    return events[np.searchsorted(events, first) : np.searchsorted(events, last)]


def newest_person(events: Ints) -> Ints:
    """The last person that has come by then, the event itself included."""
    return events // CYCLE


def newest_auction(events: Ints) -> Ints:
    """The last auction that was opened by then, the event itself included; -1 before the first.

    >>> newest_auction(np.array([0, 1, 3, 49, 50, 51])).tolist()
    [-1, 0, 2, 2, 2, 3]
    """
    newest: Ints = events // CYCLE * AUCTIONS + np.minimum(events % CYCLE, AUCTIONS) - 1
    return newest
