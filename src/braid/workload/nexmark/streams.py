"""Any slice of NEXMark's three streams, as Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from braid.model.errors import BraidError
from braid.workload.nexmark.chance import Chance
from braid.workload.nexmark.columns import auction_columns, bid_columns, person_columns
from braid.workload.nexmark.cycle import CYCLE, events_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.workload.nexmark.spec import NexmarkSpec

_INSTANT = pa.timestamp("us", "UTC")

SCHEMAS = {
    "person": pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("email", pa.string()),
            ("credit_card", pa.string()),
            ("city", pa.string()),
            ("state", pa.string()),
            ("ts", _INSTANT),
            ("extra", pa.string()),
        ]
    ),
    "auction": pa.schema(
        [
            ("id", pa.int64()),
            ("item_name", pa.string()),
            ("description", pa.string()),
            ("initial_bid", pa.int64()),  # prices are in cents
            ("reserve", pa.int64()),
            ("ts", _INSTANT),
            ("expires", _INSTANT),
            ("seller", pa.int64()),  # a person's id
            ("category", pa.int64()),
            ("extra", pa.string()),
        ]
    ),
    "bid": pa.schema(
        [
            ("auction", pa.int64()),  # an auction's id
            ("bidder", pa.int64()),  # a person's id
            ("price", pa.int64()),
            ("channel", pa.string()),
            ("url", pa.string()),
            ("ts", _INSTANT),
            ("extra", pa.string()),
        ]
    ),
}
"""The columns of each stream; `ts` is the event time."""

STREAMS = tuple(SCHEMAS)

_COLUMNS = {"person": person_columns, "auction": auction_columns, "bid": bid_columns}

_BATCH_EVENTS = 1000 * CYCLE
"""Events that are drawn at once: their columns stay in the processor's cache."""


def person(spec: NexmarkSpec, first: int, last: int) -> pa.Table:
    """The people among the events `first:last`."""
    return pa.Table.from_batches(_drawn(spec, "person", first, last), SCHEMAS["person"])


def auction(spec: NexmarkSpec, first: int, last: int) -> pa.Table:
    """The auctions among the events `first:last`."""
    return pa.Table.from_batches(_drawn(spec, "auction", first, last), SCHEMAS["auction"])


def bid(spec: NexmarkSpec, first: int, last: int) -> pa.Table:
    """The bids among the events `first:last`.

    >>> from braid.workload.nexmark import NexmarkSpec
    >>> bid(NexmarkSpec(), 0, 100).num_rows
    92
    """
    return pa.Table.from_batches(_drawn(spec, "bid", first, last), SCHEMAS["bid"])


def rows(spec: NexmarkSpec, stream: str, lower_us: int, upper_us: int) -> pa.Table:
    """What happens in a slice of time, counted from the start, in one stream."""
    found = batches(spec, stream, lower_us, upper_us)
    return pa.Table.from_batches(found, stream_schema(stream))


def batches(
    spec: NexmarkSpec, stream: str, lower_us: int, upper_us: int
) -> Iterator[pa.RecordBatch]:
    """The same, some ten thousands at a time, so that a long slice fits in memory."""
    first, last = spec.first_event(lower_us), spec.first_event(upper_us)
    return _drawn(spec, stream, first, last)


def stream_schema(stream: str) -> pa.Schema:
    """The columns of a stream, if there is one of that name."""
    if stream not in SCHEMAS:
        raise BraidError(f"unknown stream {stream!r}", hint=f"NEXMark has {', '.join(STREAMS)}")
    return SCHEMAS[stream]


def _drawn(spec: NexmarkSpec, stream: str, first: int, last: int) -> Iterator[pa.RecordBatch]:
    schema = stream_schema(stream)
    for lower in range(first, last, _BATCH_EVENTS):
        events = events_of(stream, lower, min(lower + _BATCH_EVENTS, last))
        if len(events):
            columns = _COLUMNS[stream](spec, Chance(f"{spec.seed}/{stream}", events))
            arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
