"""The event times of a query's sources, and what Spark computes for those that need it.

A TIMESTAMP is an instant, and a TIMESTAMP_NTZ is what a clock on a wall shows. Where all
sources have wall clocks, these are compared with one another, whatever the time zone. Where
sources have both, wall clocks are read in the session's time zone, as Spark does it when it
compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructField, StructType, TimestampType

from braid.cql.event_time import EventTime, check_event_time
from braid.join.wire import LATEST_US

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

COMPUTED = "event_time"
"""The column of an event time that is none of its source's own."""

DAYS = "datediff(CAST({0} AS date), DATE'1970-01-01')"
MOST_DAYS = LATEST_US // 86_400_000_000 + 1
"""What reaches farther than this does not fit the wire, and may not even fit 64 bits."""


@dataclass(frozen=True, slots=True)
class SourceTime:
    """The event time of one source: a column, or `sql` that computes it from `needs`."""

    time: EventTime
    sql: str | None = None
    needs: frozenset[str] = frozenset()

    def with_spark(self, schema: StructType) -> StructType:
        """A source's columns as Spark has them, with a computed event time."""
        if self.sql is None:
            return schema
        return StructType([*schema.fields, StructField(self.time.column, TimestampType())])

    def with_arrow(self, schema: pa.Schema) -> pa.Schema:
        """A source's columns as Arrow has them, with a computed event time."""
        if self.sql is None:
            return schema
        return schema.append(pa.field(self.time.column, pa.timestamp("us", "UTC")))

    def __str__(self) -> str:
        """The event time as a checkpoint notes it."""
        return self.time.column if self.sql is None else self.time.wall or self.sql


def source_times(name: str, schemas: Mapping[str, pa.Schema]) -> dict[str, SourceTime]:
    """The event times of all sources, each in a column of that name."""
    for source, schema in schemas.items():
        check_event_time(source, schema, name)
    zones = {source: schema.field(name).type.tz for source, schema in schemas.items()}
    named = {source: SourceTime(EventTime(name)) for source in schemas}
    if len({zone is None for zone in zones.values()}) == 1:
        return named
    computed = _free_name(COMPUTED, schemas.values())
    instants = SourceTime(EventTime(computed, True, name), _instant(name), frozenset([name]))
    return named | {source: instants for source, zone in zones.items() if zone is None}


def _free_name(name: str, schemas: Iterable[pa.Schema]) -> str:
    """A name that no column has, in any case."""
    taken = {column.lower() for schema in schemas for column in schema.names}
    names = (name if number == 1 else f"{name}_{number}" for number in range(1, 1_000_000))
    return next(each for each in names if each not in taken)


def _instant(wall: str) -> str:
    """The instant of a wall clock, in the session's time zone."""
    quoted = "`" + wall.replace("`", "``") + "`"
    days = DAYS.format(quoted)
    return (
        f"CASE WHEN abs({days}) <= {MOST_DAYS} THEN CAST({quoted} AS timestamp)"
        f" WHEN {quoted} IS NOT NULL THEN TIMESTAMP'9999-01-01 00:00:00Z' END"  # out of range
    )
