"""Text and schemas to a bound `Query`: every name looked up, every type checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.cql.key import join_key
from braid.cql.normal import normal_text
from braid.cql.parse import parse
from braid.cql.scope import Scope, nearest, open_scope
from braid.cql.syntax import SelectItem, Star
from braid.model.errors import BraidError
from braid.model.query import OutputColumn, Query, Schemas, StreamRef

if TYPE_CHECKING:
    from collections.abc import Iterator


def bind(text: str, schemas: Schemas, *, event_time: str) -> Query:
    """Read a query over streams with the given schemas.

    `event_time` names the timestamp column that every stream must have, spelled as in the
    schemas. A fault of the text is a `QueryError`, one of that column a plain `BraidError`.

    >>> flat = pa.schema({"k": pa.int64(), "ts": pa.timestamp("us")})
    >>> text = "select A.k from a [range 60 seconds], b [range 0.5 hours] where b.K = a.k"
    >>> bind(text, {"a": flat, "b": flat}, event_time="ts").text
    'SELECT a.k FROM a [RANGE 1 MINUTE], b [RANGE 30 MINUTES] WHERE a.k = b.k'
    """
    syntax = parse(text)
    scope = open_scope(syntax.streams, schemas)
    keys = join_key(scope, syntax.streams, syntax.equalities)
    streams = tuple(
        StreamRef(source, alias, item.window_us, key)
        for source, alias, item, key in zip(
            scope.sources, scope.aliases, syntax.streams, keys, strict=True
        )
    )
    query = Query("", streams, _output(scope, syntax.select))
    _check_event_time(scope, event_time)
    return replace(query, text=normal_text(query))


def sources(text: str) -> tuple[str, ...]:
    """The distinct streams that a query names, as it spells them, in the order of FROM.

    >>> sources("SELECT x.k FROM a [RANGE 1 DAY] x, b [RANGE 1 DAY], a [RANGE 1 DAY] z")
    ('a', 'b')
    """
    return tuple(dict.fromkeys(item.source.text for item in parse(text).streams))


def _output(scope: Scope, select: tuple[SelectItem, ...]) -> tuple[OutputColumn, ...]:
    taken: dict[str, OutputColumn] = {}
    for item in select:
        for out in _columns(scope, item):
            if out.name.lower() in taken:
                alias = scope.aliases[out.stream]
                raise item.place.error(
                    f"two columns of the result are called {out.name!r}",
                    hint=f"name one of them anew, such as "
                    f"{alias}.{out.column} AS {alias}_{out.column}",
                )
            taken[out.name.lower()] = out
    return tuple(taken.values())


def _columns(scope: Scope, item: SelectItem) -> Iterator[OutputColumn]:
    """The columns that one entry of SELECT stands for."""
    if not isinstance(item.what, Star):
        stream, column = scope.column(item.what)
        yield OutputColumn(item.alias.text if item.alias else column, stream, column)
        return
    one = item.what.stream
    for stream in range(len(scope.aliases)) if one is None else [scope.stream(one)]:
        for column in scope.schemas[stream].names:
            yield OutputColumn(column, stream, column)


def _check_event_time(scope: Scope, event_time: str) -> None:
    for source, schema in zip(scope.sources, scope.schemas, strict=True):
        found = schema.get_all_field_indices(event_time)
        if len(found) != 1:
            count = "two columns" if found else "no column"
            raise BraidError(
                f"stream {source!r} has {count} {event_time!r} to take event time from",
                hint="rename one" if found else nearest(event_time, schema.names),
            )
        kind = schema.field(found[0]).type
        if not pa.types.is_timestamp(kind):
            raise BraidError(
                f"event-time column {event_time!r} of stream {source!r} is {kind}, "
                "not a timestamp",
                hint="CAST it to TIMESTAMP in the DataFrame, before the query",
            )
