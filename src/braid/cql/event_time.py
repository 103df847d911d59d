"""The columns that say when: by source as given, by stream as a query needs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.cql.lower import check_variables, refuse_aggregates
from braid.cql.parse import parse
from braid.cql.quote import quoted, spelled
from braid.cql.scope import Scope, nearest
from braid.cql.snippet import Snippet, snippet
from braid.cql.syntax import Star
from braid.model.errors import BraidError, QueryError

if TYPE_CHECKING:
    from braid.model.query import TimeNames

EXAMPLE = "give a column, or an expression such as timestamp_millis(ts) or to_timestamp(ts)"


@dataclass(frozen=True, slots=True)
class EventTime:
    """The event-time column of one source, under its name in the schema.

    A computed one is no column of the source's own, so that `*` leaves it out. It may be the
    moments of a `wall` column: one of the source's own, whose values have no time zone.
    """

    column: str
    is_computed: bool = False
    wall: str | None = None


EventTimes = str | Mapping[str, EventTime]
"""One name for all sources, or an event time for each."""


def stream_times(scope: Scope, given: EventTimes) -> tuple[EventTime, ...]:
    """The event time of each stream of FROM, once it is known to be a timestamp."""
    times = tuple(
        EventTime(given) if isinstance(given, str) else given[source]
        for source in scope.sources
    )
    for source, schema, time in zip(scope.sources, scope.schemas, times, strict=True):
        check_event_time(source, schema, time.column)
    return times


def time_names(times: tuple[EventTime, ...]) -> TimeNames:
    """The names of all streams' event times: one, if they have the same."""
    names = tuple(time.column for time in times)
    return names[0] if len(set(names)) == 1 else names


def time_expression(source: str, schema: pa.Schema, text: str) -> Snippet:
    """An event time that is computed from a source's own columns, as text for Spark."""
    window = "[UNBOUNDED]"
    try:
        syntax = parse(f"SELECT {text} FROM {quoted(source)} {window}, other {window}")
        item, *more = syntax.select
        if more or isinstance(item.what, Star) or item.alias or syntax.conditions:
            raise item.place.error("this is not one expression")
        scope = Scope((source,), (source,), (schema,), (frozenset(),))
        refuse_aggregates(item.what, "an event time")
        check_variables(item.what, scope)
        return snippet(scope, item.what, 0)
    except QueryError as error:
        raise BraidError(
            f"cannot read the event time {text!r} of stream {source!r}: {error.message}",
            hint=error.hint or EXAMPLE,
        ) from None


def check_moment(source: str, text: str, kind: pa.DataType) -> None:
    """Raise an error for an expression that gives no timestamps."""
    if not pa.types.is_timestamp(kind):
        raise BraidError(
            f"the event time {text!r} of stream {source!r} is {kind}, not a timestamp",
            hint=EXAMPLE,
        )


def check_event_time(source: str, schema: pa.Schema, column: str) -> None:
    """Raise an error if a source has no such column, or one that is no timestamp."""
    found = schema.get_all_field_indices(column)
    if len(found) != 1:
        count = "two columns" if found else "no column"
        raise BraidError(
            f"stream {source!r} has {count} {column!r} to take event time from",
            hint="rename one" if found else nearest(column, schema.names),
        )
    kind = schema.field(found[0]).type
    if not pa.types.is_timestamp(kind):
        raise BraidError(
            f"event-time column {column!r} of stream {source!r} is {kind}, not a timestamp",
            hint=f"give an expression that makes one of it: {_cure(column, kind)}",
        )


def _cure(column: str, kind: pa.DataType) -> str:
    function = "timestamp_millis" if pa.types.is_integer(kind) else "to_timestamp"
    return f"{function}({spelled(column)})"
