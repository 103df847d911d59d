"""Facts that the engine reports, one JSON object each, in the order in which they happened.

Every view of a run (terminal, dashboard, reports) is drawn from these and from nothing else.
"""

from __future__ import annotations

from braid.events.facts import (
    BatchDone,
    BatchRetried,
    Event,
    Finished,
    ProbeCount,
    Recovered,
    Started,
    StateSize,
    WorkerShare,
    instant,
)
from braid.events.journal import Journal

__all__ = [
    "BatchDone",
    "BatchRetried",
    "Event",
    "Finished",
    "Journal",
    "ProbeCount",
    "Recovered",
    "Started",
    "StateSize",
    "WorkerShare",
    "instant",
]
