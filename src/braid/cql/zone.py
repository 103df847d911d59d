"""Moments of several kinds in one expression: those without a time zone become instants.

A TIMESTAMP is an instant. A TIMESTAMP_NTZ is what a clock on a wall shows, and a DATE the first
moment of a day there; which instant that is depends on the session's time zone, which only
Spark knows. Where either meets a TIMESTAMP, Spark casts it, and so do we: in its own stream,
before the split. Workers know no time zone. Such a query, and one that writes the casts out,
means something else in another zone.
"""

from __future__ import annotations

import datetime as dt
import re
from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.cql.snippet import Snippet
from braid.cql.spell import literal
from braid.model.expression import Call, Column, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.cql.lower import Derivations
    from braid.cql.place import Place
    from braid.model.errors import QueryError
    from braid.model.query import Query

    TypeOf = Callable[[Column], pa.DataType | None]

_MEETING = frozenset(
    ("=", "<>", "<", "<=", ">", ">=", "-", "in", "case", "coalesce", "greatest", "least")
)
"""The functions in which moments may meet."""

_CAST = "cast({} AS TIMESTAMP)"
_TO_INSTANT = re.compile(r"(\bAS\s+|::\s*)TIMESTAMP(_LTZ)?\b", re.IGNORECASE)


class _Kind(Enum):
    INSTANT = "TIMESTAMP"
    WALL = "TIMESTAMP_NTZ"
    DATE = "DATE"


def as_instants(made: Call, derivations: Derivations, place: Place) -> Call:
    """A call with all its moments as instants, if one of them is."""
    if made.function not in _MEETING:
        return made
    kinds = [_kind(each, derivations.type_of) for each in made.arguments]
    if _Kind.INSTANT not in kinds:
        return made
    arguments = (
        each if kind in (None, _Kind.INSTANT) else _instant(each, kind, derivations, place)
        for each, kind in zip(made.arguments, kinds, strict=True)
    )
    return Call(made.function, tuple(arguments))


def casts_to_instants(query: Query) -> bool:
    """Whether Spark casts to TIMESTAMP for a query: it does so by the session's time zone."""
    texts = (
        sql
        for stream in query.streams
        for sql in (*(derived.sql for derived in stream.derived), stream.filter or "")
    )
    return any(map(_TO_INSTANT.search, texts))


def refuse_zones(made: Call, type_of: TypeOf, place: Place) -> None:
    """Raise an error if an expression over groups mixes instants with other moments."""
    kinds = {kind for each in made.arguments if (kind := _kind(each, type_of))}
    if made.function in _MEETING and _Kind.INSTANT in kinds and len(kinds) > 1:
        raise _refusal(place)


def _kind(expression: Expression, type_of: TypeOf) -> _Kind | None:
    """The kind of moment that an expression gives; None for all other values."""
    match expression:
        case Column():
            return _kind_of_type(type_of(expression))
        case Literal(dt.datetime() as moment):
            return _Kind.WALL if moment.tzinfo is None else _Kind.INSTANT
        case Literal(dt.date()):
            return _Kind.DATE
        case Call("+" | "-" | "case" | "coalesce" | "greatest" | "least" as name, arguments):
            kinds = [kind for each in arguments if (kind := _kind(each, type_of))]
            return None if name == "-" and len(kinds) == 2 else next(iter(kinds), None)
    return None


def _kind_of_type(kind: pa.DataType | None) -> _Kind | None:
    if kind is None:
        return None
    if pa.types.is_timestamp(kind):
        return _Kind.WALL if kind.tz is None else _Kind.INSTANT
    return _Kind.DATE if pa.types.is_date(kind) else None


def _instant(
    expression: Expression, kind: _Kind, derivations: Derivations, place: Place
) -> Expression:
    """A moment as the instant that Spark takes it for."""
    match expression:
        case Column():
            if expression in derivations.walls:
                return derivations.walls[expression]
            inner = derivations.snippet(expression)
            stream, sql, text, needs = inner.stream, inner.sql, inner.text, inner.needs
        case Literal(value):
            stream, needs = 0, frozenset[str]()
            sql = text = literal(value)[0]
        case _:
            raise _refusal(place, kind)
    cast = Snippet(stream, _CAST.format(sql), _CAST.format(text), True, needs)
    return derivations.column(cast, place)


def _refusal(place: Place, kind: _Kind | None = None) -> QueryError:
    what = "a moment without a time zone" if kind is None else f"a {kind.value}"
    return place.error(
        f"{what} meets a TIMESTAMP here, and only Spark can tell which instant it is",
        hint="CAST columns of streams to TIMESTAMP, each by itself; write a constant with its "
        "zone, such as TIMESTAMP '2026-01-31 00:00:00Z'",
    )
