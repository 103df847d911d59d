"""The columns of people, auctions and bids.

Whom a row refers to is counted from 0 within this module, and from `FIRST_ID` in the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.workload.nexmark import words
from braid.workload.nexmark.cycle import AUCTIONS, CYCLE, newest_auction, newest_person
from braid.workload.nexmark.prices import price

if TYPE_CHECKING:
    from braid.workload.arrivals import Ints
    from braid.workload.nexmark.chance import Chance
    from braid.workload.nexmark.spec import NexmarkSpec

Columns: TypeAlias = "dict[str, Ints | pa.Array]"

FIRST_ID = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5

HOT_EVERY = 100
"""Every so manyth person or auction is hot, until the next such one has come."""

_OTHER_BYTES = {"person": 75, "auction": 125, "bid": 32}
"""What a row has beside `extra`, about; of a bid its numbers alone, as the benchmark counts."""


def person_columns(spec: NexmarkSpec, chance: Chance) -> Columns:
    """Somebody who comes to the auction house."""
    names = [_word(chance, words.FIRST_NAMES, "first"), _word(chance, words.LAST_NAMES, "last")]
    mailbox = _word(chance, words.stretches(7, 7), "mailbox")
    host = _word(chance, words.stretches(5, 5), "host")
    card = [_word(chance, words.CARD_GROUPS, f"card {group}") for group in range(4)]
    return {
        "id": FIRST_ID + newest_person(chance.events),
        "name": pc.binary_join_element_wise(*names, " "),
        "email": pc.binary_join_element_wise(mailbox, "@", host, ".com", ""),
        "credit_card": pc.binary_join_element_wise(*card, " "),
        "city": _word(chance, words.CITIES, "city"),
        "state": _word(chance, words.STATES, "state"),
        "ts": spec.instant_us(chance.events),
        "extra": _filling(chance, spec.person_bytes - _OTHER_BYTES["person"]),
    }


def auction_columns(spec: NexmarkSpec, chance: Chance) -> Columns:
    """Something that somebody offers."""
    initial_bid = price(chance, "initial bid")
    opens_us = spec.instant_us(chance.events)
    return {
        "id": FIRST_ID + newest_auction(chance.events),
        "item_name": _word(chance, words.stretches(3, 20), "item name"),
        "description": _word(chance, words.stretches(3, 100), "description"),
        "initial_bid": initial_bid,
        "reserve": initial_bid + price(chance, "reserve"),
        "ts": opens_us,
        "expires": opens_us + _auction_us(spec, chance),
        "seller": FIRST_ID + _seller(spec, chance),
        "category": FIRST_CATEGORY + chance.below(CATEGORIES, "category"),
        "extra": _filling(chance, spec.auction_bytes - _OTHER_BYTES["auction"]),
    }


def bid_columns(spec: NexmarkSpec, chance: Chance) -> Columns:
    """What somebody would pay."""
    channel = pa.array(_channel(chance))
    return {
        "auction": FIRST_ID + _wanted(spec, chance),
        "bidder": FIRST_ID + _bidder(spec, chance),
        "price": price(chance, "price"),
        "channel": words.CHANNELS.take(channel),
        "url": words.urls().take(channel),
        "ts": spec.instant_us(chance.events),
        "extra": _filling(chance, spec.bid_bytes - _OTHER_BYTES["bid"]),
    }


def _auction_us(spec: NexmarkSpec, chance: Chance) -> Ints:
    """How long auctions last, such that about `open_auctions` of them are open at a time."""
    opened_meanwhile = spec.open_auctions * CYCLE // AUCTIONS
    closes_us = spec.instant_us(chance.events + opened_meanwhile)
    mean_us = closes_us - spec.instant_us(chance.events)
    length_us: Ints = 1 + (chance.fraction("length") * (2 * mean_us)).astype(np.int64)
    return length_us


def _seller(spec: NexmarkSpec, chance: Chance) -> Ints:
    newest = newest_person(chance.events)
    cold = _recent(chance, newest, spec.active_people, "seller")
    return np.where(chance.one_in(spec.hot_sellers, "cold seller"), cold, _hot(newest))


def _wanted(spec: NexmarkSpec, chance: Chance) -> Ints:
    """The auctions that are bid for; some may have ended."""
    newest = newest_auction(chance.events)
    cold = _recent(chance, newest, spec.open_auctions, "auction")
    return np.where(chance.one_in(spec.hot_auctions, "cold auction"), cold, _hot(newest))


def _bidder(spec: NexmarkSpec, chance: Chance) -> Ints:
    """The one after the hot seller is the hot bidder, as soon as there is one."""
    newest = newest_person(chance.events)
    cold = _recent(chance, newest, spec.active_people, "bidder")
    hot = np.minimum(_hot(newest) + 1, newest)
    return np.where(chance.one_in(spec.hot_bidders, "cold bidder"), cold, hot)


def _hot(newest: Ints) -> Ints:
    return newest // HOT_EVERY * HOT_EVERY


def _recent(chance: Chance, newest: Ints, many: int, purpose: str) -> Ints:
    """One of the newest so many, or of all there are if these are fewer."""
    return newest - chance.below(np.minimum(newest + 1, many), purpose)


def _channel(chance: Chance) -> Ints:
    """Places in `words.CHANNELS`: half of the bids come through a hot one."""
    hot = len(words.HOT_CHANNELS)
    cold = hot + chance.below(len(words.CHANNELS) - hot, "channel")
    return np.where(chance.one_in(2, "cold channel"), cold, chance.below(hot, "hot channel"))


def _word(chance: Chance, pool: pa.Array, purpose: str) -> pa.Array:
    return pool.take(pa.array(chance.below(len(pool), purpose)))


def _filling(chance: Chance, missing_bytes: int) -> pa.Array:
    return _word(chance, words.fillings(max(0, missing_bytes)), "extra")
