"""How rows travel from the split to a worker, and what a worker stores of them.

Every column that crosses from the JVM to Python costs as much as the whole join of its row, so
the wire is as narrow as it gets:

* `at`: the event time in microseconds, shifted left, with a *tag* in the low bits: which stream
  the row is of, or why it can never join (a null key, a null event time);
* `hash`: the 64-bit hash of the key;
* *slots*: typed places that the streams share. Stream a's bigint `v` and stream b's bigint `w`
  travel in the same slot, so the union of the streams is as wide as its widest stream.

A key that can be computed back from its hash (`braid.join.keys`), and the event time, take no
slot. The split writes this form in Catalyst (`braid.runtime.split`); here is its description.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.join.keys import is_exact
from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from braid.model.query import Query, Schemas

TAG_BITS = 5
MOST_STREAMS = (1 << TAG_BITS) // 3
"""Each stream takes three tags: a good row, a null key, a null event time."""

LATEST_US = 1 << (62 - TAG_BITS)
"""Event times beyond this (the year 6500 or so) do not fit the wire and count as null."""


@dataclass(frozen=True, slots=True)
class StreamLayout:
    """The columns that a worker stores of one stream, after hash and time."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    slots: tuple[int, ...]

    def schema(self) -> pa.Schema:
        """The schema of this stream's runs."""
        fixed = [pa.field("hash", pa.uint64(), False), pa.field("time", pa.int64(), False)]
        return pa.schema(fixed + [pa.field(f"column {n}", t) for n, t in self._columns()])

    def _columns(self) -> Iterable[tuple[str, pa.DataType]]:
        return zip(self.names, self.types, strict=True)


@dataclass(frozen=True, slots=True)
class Wire:
    """The layout of all streams of a query."""

    slots: tuple[pa.DataType, ...]
    streams: tuple[StreamLayout, ...]
    key_types: tuple[pa.DataType, ...]
    time_types: tuple[pa.DataType, ...]
    event_time: str

    @property
    def exact(self) -> bool:
        """Whether hashes stand for keys, so that no key is stored or compared."""
        return is_exact(self.key_types)


def lay_out(query: Query, schemas: Schemas, event_time: str) -> Wire:
    """Give every column that the query needs a place on the wire."""
    if len(query.streams) > MOST_STREAMS:
        raise BraidError(
            f"a query may join at most {MOST_STREAMS} streams, and this one has "
            f"{len(query.streams)}"
        )
    key_types = tuple(
        schemas[query.streams[0].source].field(k).type for k in query.streams[0].key
    )
    slots: list[pa.DataType] = []
    streams = []
    for number, stream in enumerate(query.streams):
        key = () if is_exact(key_types) else stream.key
        payload = (c for c in query.columns(number) if c != event_time)
        names = tuple(dict.fromkeys((*key, *payload)))
        types = tuple(schemas[stream.source].field(name).type for name in names)
        streams.append(StreamLayout(names, types, _take_slots(slots, types)))
    time_types = tuple(schemas[s.source].field(event_time).type for s in query.streams)
    return Wire(tuple(slots), tuple(streams), key_types, time_types, event_time)


def _take_slots(slots: list[pa.DataType], types: tuple[pa.DataType, ...]) -> tuple[int, ...]:
    """One free slot of the right type for each column, adding slots where there is none."""
    taken: list[int] = []
    for kind in types:
        free = (i for i, slot in enumerate(slots) if slot == kind and i not in taken)
        place = next(free, None)
        if place is None:
            place = len(slots)
            slots.append(kind)
        taken.append(place)
    return tuple(taken)
