"""The event times of a query's sources, and what Spark computes for those that need it.

A TIMESTAMP is an instant, and a TIMESTAMP_NTZ is what a clock on a wall shows. Where all
sources have wall clocks, these are compared with one another, whatever the time zone. Where
sources have both, wall clocks are read in the session's time zone, as Spark does it when it
compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructField, StructType, TimestampNTZType, TimestampType

from braid.cql.event_time import (
    EXAMPLE,
    EventTime,
    check_event_time,
    check_moment,
    time_expression,
)
from braid.model.errors import BraidError
from braid.plan.wire import LATEST_US

if TYPE_CHECKING:
    from collections.abc import Iterable

INSTANT = pa.timestamp("us", "UTC")

COMPUTED = "event_time"
"""The column of an event time that is none of its source's own."""

DAYS = "datediff(CAST({0} AS date), DATE'1970-01-01')"
_BEYOND = "TIMESTAMP'9999-01-01 00:00:00Z'"  # counts as out of range, as it does not fit either
MOST_DAYS = LATEST_US // 86_400_000_000 + 1
"""What reaches farther than this does not fit the wire, and may not even fit 64 bits."""


Given = str | Mapping[str, str]
"""One column or expression for all sources, or one for each."""

KindOf = Callable[[str, str], pa.DataType]
"""The type of Spark SQL over a source's own columns."""


@dataclass(frozen=True, slots=True)
class SourceTime:
    """The event time of one source: a column, or `sql` that computes it from `needs`."""

    time: EventTime
    kind: pa.DataType
    sql: str | None = None
    needs: frozenset[str] = frozenset()

    @property
    def is_wall(self) -> bool:
        """Whether it is what a clock on a wall shows."""
        return self.kind.tz is None

    def as_instants(self, name: str) -> SourceTime:
        """The same as instants, in the session's time zone, in a column of that name."""
        own = self.time.column if self.sql is None else None
        wall = f"({self.sql})" if own is None else _quoted(own)
        days = DAYS.format(wall)
        sql = (
            f"CASE WHEN abs({days}) <= {MOST_DAYS} THEN CAST({wall} AS timestamp)"
            f" WHEN {wall} IS NOT NULL THEN {_BEYOND} END"
        )
        needs = self.needs if own is None else frozenset([own])
        return SourceTime(EventTime(name, True, own), INSTANT, sql, needs)

    def with_spark(self, schema: StructType) -> StructType:
        """A source's columns as Spark has them, with a computed event time."""
        if self.sql is None:
            return schema
        kind = TimestampNTZType() if self.is_wall else TimestampType()
        return StructType([*schema.fields, StructField(self.time.column, kind)])

    def with_arrow(self, schema: pa.Schema) -> pa.Schema:
        """A source's columns as Arrow has them, with a computed event time."""
        if self.sql is None:
            return schema
        return schema.append(pa.field(self.time.column, self.kind))

    def __str__(self) -> str:
        """The event time as a checkpoint notes it."""
        return self.time.column if self.sql is None else self.time.wall or self.sql


def source_times(
    given: Given, schemas: Mapping[str, pa.Schema], kind_of: KindOf
) -> dict[str, SourceTime]:
    """The event times of all sources."""
    name = _free_name(COMPUTED, schemas.values())
    times = {
        source: _source_time(source, schema, _text(given, source), name, kind_of)
        for source, schema in schemas.items()
    }
    if len({time.is_wall for time in times.values()}) == 1:
        return times
    return {
        source: time.as_instants(name) if time.is_wall else time
        for source, time in times.items()
    }


def _text(given: Given, source: str) -> str:
    if isinstance(given, str):
        return given
    if source not in given:
        raise BraidError(
            f"event_time does not say which column of stream {source!r} says when",
            hint=f"add it: {{{source!r}: 'a column or an expression'}}",
        )
    return given[source]


def _source_time(
    source: str, schema: pa.Schema, text: str, name: str, kind_of: KindOf
) -> SourceTime:
    if text in schema.names or text.isidentifier():
        check_event_time(source, schema, text)
        return SourceTime(EventTime(text), schema.field(text).type)
    made = time_expression(source, schema, text)
    try:
        kind = kind_of(source, made.sql)
    except BraidError as error:
        raise BraidError(
            f"cannot compute the event time {text!r} of stream {source!r}: {error.message}",
            hint=error.hint or EXAMPLE,
        ) from None
    check_moment(source, text, kind)
    return SourceTime(EventTime(name, is_computed=True), kind, made.sql, made.needs)


def _free_name(name: str, schemas: Iterable[pa.Schema]) -> str:
    """A name that no column has, in any case."""
    taken = {column.lower() for schema in schemas for column in schema.names}
    names = (name if number == 1 else f"{name}_{number}" for number in range(1, 1_000_000))
    return next(each for each in names if each not in taken)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
