"""How rows travel to a worker, and what a worker stores of them.

Every column that crosses between the JVM and Python costs as much as the whole join of its row,
so the wire is as narrow as it gets:

* `at`: the event time in microseconds, shifted left, with a *tag* in the low bits: the place of
  the port that the row comes by, among those that rows are sent by, or why it can never join (a
  null key, a null event time). No tag outlasts a batch: records name ports by their numbers;
* `hash`: the 64-bit hash of the key that the port's space has;
* *slots*: typed places that the ports share. Stream a's bigint `v` and stream b's bigint `w`
  travel in the same slot, so the union of the streams is as wide as its widest stream. A round
  sends only the slots that one of its ports uses.

Of a stream's own rows, a key that can be computed back from its hash (`braid.plan.keys`) takes
no slot, and nor does the event time. Joined rows have as time that of their youngest member,
and carry their deadline. The split writes this form in Catalyst (`braid.spark.split`), and
workers write it for the next round; here is its description.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.model.errors import PlanTooWide
from braid.model.expression import GROUPED, Column
from braid.model.query import time_column
from braid.plan.keys import is_exact
from braid.state.runs import DEADLINE

if TYPE_CHECKING:
    from braid.model.query import Query, TimeNames
    from braid.plan.rounds import Port, Relation, Round, Rounds, State
    from braid.state.runs import Times

TAG_BITS = 7
TAGS = (1 << TAG_BITS) - 1
NULL_KEY, NULL_TIME, REPORT = TAGS - 2, TAGS - 1, TAGS
"""Tags of rows that come by no port: those that cannot join, and reports of earlier rounds."""

MOST_PORTS = NULL_KEY
"""A round has so many ports at most that rows are sent by: each has a tag."""

LATEST_US = 1 << (63 - TAG_BITS)
"""Event times that do not fit the wire begin here, in 4253, and as long before 1970."""

OUT_OF_RANGE = 1 << TAG_BITS | NULL_TIME
"""The `at` of a row whose event time does not fit; of one without a time it is `NULL_TIME`."""

BAD_ROW = 2 << TAG_BITS | NULL_TIME
"""The `at` of a row that an expression fails for, and that is kept apart."""

UNTIL = Column(GROUPED, "until")
"""The deadline of a joined row: the last event time that may still join it."""

FIRST_STORED = 2
"""The stored columns of a run start after hash and time."""

Types = Callable[[Column], pa.DataType]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that a worker stores of a relation's rows, after hash and time.

    `recovered` are columns that are computed back from the hash.
    """

    columns: tuple[Column, ...]
    types: tuple[pa.DataType, ...]
    slots: tuple[int, ...]
    recovered: tuple[Column, ...] = ()

    def schema(self) -> pa.Schema:
        """The schema of runs with this layout."""
        fixed = [pa.field("hash", pa.uint64(), False), pa.field("time", pa.int64(), False)]
        named = zip(self.columns, self.types, strict=True)
        return pa.schema(fixed + [pa.field(_field_name(c), kind) for c, kind in named])

    def place(self, column: Column) -> int | None:
        """The place of a stored column in a run."""
        if column not in self.columns:
            return None
        return FIRST_STORED + self.columns.index(column)


def _field_name(column: Column) -> str:
    """What a stored column is called in runs."""
    return DEADLINE if column == UNTIL else f"column {column.stream} {column.column}"


@dataclass(frozen=True, slots=True)
class Wire:
    """The layouts of all ports and states of a plan."""

    slots: tuple[pa.DataType, ...]
    layouts: Mapping[tuple[int, Relation], Layout]  # by space and relation
    exact: tuple[bool, ...]  # by space: whether hashes stand for keys
    types: Mapping[Column, pa.DataType]
    event_time: TimeNames

    def layout(self, at: Port | State) -> Layout:
        """How the rows of a port or a state are stored."""
        return self.layouts[at.space, at.relation]

    def slots_of(self, a_round: Round) -> tuple[int, ...]:
        """The slots that a round's rows travel in."""
        ports = (port for port in a_round.ports if not port.made)
        used = {slot for port in ports for slot in self.layout(port).slots}
        return tuple(sorted(used))

    def schema(self, a_round: Round, *, reports: bool) -> pa.Schema:
        """The columns that cross to a round's workers; with reports of the rounds before."""
        fixed = [("at", pa.int64()), ("hash", pa.int64())]
        slots = [(f"slot{slot}", self.slots[slot]) for slot in self.slots_of(a_round)]
        return pa.schema(fixed + slots + ([("report", pa.string())] if reports else []))


def tag_of(a_round: Round, port: int) -> int:
    """The tag of rows that are sent by a port of a round."""
    return a_round.sent.index(port)


def lay_out(
    query: Query, rounds: Rounds, types: Mapping[Column, pa.DataType], event_time: TimeNames
) -> Wire:
    """Give every column that a plan needs a place on the wire."""
    for number, a_round in enumerate(rounds.rounds):
        if len(a_round.sent) > MOST_PORTS:
            raise PlanTooWide(
                f"round {number} of the plan takes {len(a_round.sent)} kinds of rows, and "
                f"{MOST_PORTS} is the most",
                hint="join fewer streams, or choose another plan",
            )
    exact = tuple(
        is_exact([types[query.keys[key].columns[0]] for key in space.keys])
        for space in rounds.spaces
    )
    slots: list[pa.DataType] = []
    layouts = {}
    ports = [port for a_round in rounds.rounds for port in a_round.ports]
    places: list[Port | State] = [*ports, *rounds.states]
    for place in places:
        if (place.space, place.relation) not in layouts:
            keys = rounds.spaces[place.space].keys if exact[place.space] else ()
            layouts[place.space, place.relation] = _layout(
                query, place.relation, keys, types, event_time, slots
            )
    return Wire(tuple(slots), layouts, exact, types, event_time)


def _layout(
    query: Query,
    relation: Relation,
    exact_keys: tuple[int, ...],
    types: Mapping[Column, pa.DataType],
    event_time: TimeNames,
    slots: list[pa.DataType],
) -> Layout:
    recovered: tuple[Column, ...] = ()
    if relation.is_joined:
        columns = (UNTIL, *relation.columns)
    else:
        (stream,) = relation.streams
        recovered = tuple(
            Column(stream, name)
            for key in exact_keys
            if (name := query.keys[key].of(stream)) is not None
        )
        known = {*recovered, time_column(event_time, stream)}
        columns = tuple(column for column in relation.columns if column not in known)
    kinds = tuple(pa.int64() if column == UNTIL else types[column] for column in columns)
    return Layout(columns, kinds, take_slots(slots, kinds), recovered)


def take_slots(slots: list[pa.DataType], types: Iterable[pa.DataType]) -> tuple[int, ...]:
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


def as_time(times: Times, kind: pa.DataType) -> pa.Array:
    """Microseconds as timestamps of some type."""
    return pa.array(np.ascontiguousarray(times)).view(pa.timestamp("us", kind.tz)).cast(kind)
