"""How fast NEXMark's events come, how skewed they are, and when each happens."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from braid.workload.checks import require_whole
from braid.workload.spec import DEFAULT_START_US

if TYPE_CHECKING:
    from braid.workload.arrivals import Ints

_BOUNDS = {
    "rate": (1, 10**9),
    "seed": (0, 2**64 - 1),
    "start_us": (0, 2**56),
    "hot_auctions": (1, 10**6),
    "hot_bidders": (1, 10**6),
    "hot_sellers": (1, 10**6),
    "open_auctions": (1, 10**6),
    "active_people": (1, 10**6),
    "person_bytes": (0, 10_000),
    "auction_bytes": (0, 10_000),
    "bid_bytes": (0, 10_000),
}


@dataclass(frozen=True, slots=True)
class NexmarkSpec:
    """What the three streams look like; the defaults are the benchmark's.

    `rate` counts events of all three streams per second. Of `hot_auctions` bids all but one go
    to the auction that is hot just then; so for bidders, and for sellers of auctions. The other
    bids go to the newest `open_auctions`, and are made by the newest `active_people`. Rows
    have about so many bytes, which their column `extra` makes up; 0 leaves it empty.
    """

    rate: int = 10_000
    seed: int = 1
    start_us: int = DEFAULT_START_US
    hot_auctions: int = 2
    hot_bidders: int = 4
    hot_sellers: int = 4
    open_auctions: int = 100
    active_people: int = 1000
    person_bytes: int = 200
    auction_bytes: int = 500
    bid_bytes: int = 100

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        for field in fields(self):
            require_whole(field.name, getattr(self, field.name), *_BOUNDS[field.name])

    def instant_us(self, events: Ints) -> Ints:
        """When events happen: evenly, `rate` of them in a second, from the start on."""
        # Whole seconds apart from the rest, as `events * 1_000_000` need not fit 64 bits.
        seconds, rest = events // self.rate, events % self.rate
        times: Ints = self.start_us + seconds * 1_000_000 + rest * 1_000_000 // self.rate
        return times

    def first_event(self, moment_us: int) -> int:
        """The first event at a moment, counted from the start, or after it."""
        return -(-max(0, moment_us) * self.rate // 1_000_000)
