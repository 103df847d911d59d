"""Facts that the engine reports, one JSON object each, in the order in which they happened.

Every view of a run (terminal, dashboard, reports) is drawn from these and from nothing else.
"""

from __future__ import annotations

from braid.events.facts import (
    BatchDone,
    BatchRetried,
    CleanedUp,
    ClockPutBack,
    Displaced,
    Event,
    EventsMissed,
    Failed,
    FileAwaited,
    Finished,
    GapFound,
    Migrated,
    PairSelectivity,
    ProbeCount,
    Recovered,
    Refused,
    Relocated,
    Replanned,
    RowsHeld,
    Spilled,
    Started,
    StateSize,
    StreamRate,
    WorkerShare,
    instant,
)
from braid.events.journal import Journal, follow, require_folder
from braid.events.subscription import Subscription
from braid.events.telling import VERSION, ToldEvent

__all__ = [
    "VERSION",
    "BatchDone",
    "BatchRetried",
    "CleanedUp",
    "ClockPutBack",
    "Displaced",
    "Event",
    "EventsMissed",
    "Failed",
    "FileAwaited",
    "Finished",
    "GapFound",
    "Journal",
    "Migrated",
    "PairSelectivity",
    "ProbeCount",
    "Recovered",
    "Refused",
    "Relocated",
    "Replanned",
    "RowsHeld",
    "Spilled",
    "Started",
    "StateSize",
    "StreamRate",
    "Subscription",
    "ToldEvent",
    "WorkerShare",
    "follow",
    "instant",
    "require_folder",
]
