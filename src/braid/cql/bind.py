"""Text and schemas to a bound `Query`: every name looked up, every type checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from braid.cql.condition import Sorter, using_equality
from braid.cql.event_time import EventTime, EventTimes, stream_times, time_names
from braid.cql.group import Groups, is_grouped
from braid.cql.key import join_keys
from braid.cql.lower import Derivations, Lowering
from braid.cql.normal import Texts, normal_text
from braid.cql.parse import parse
from braid.cql.place import SIMPLER, Place
from braid.cql.read_term import DEEPEST
from braid.cql.scope import Scope, find_source, open_scope
from braid.cql.select import Selection, entries
from braid.cql.sql import bracket_depth, read_words
from braid.cql.stream import history, refuse_slide, slide_us
from braid.cql.timebound import TimeReader, first_impossible, tightest
from braid.cql.types import Types, Typing
from braid.model.expression import Column
from braid.model.query import Key, Query, Schemas, StreamRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from braid.cql.condition import Equality
    from braid.cql.key import Joins
    from braid.cql.select import Entry
    from braid.cql.snippet import Snippet
    from braid.cql.syntax import Syntax
    from braid.model.errors import QueryError
    from braid.model.query import Grouping, Output, TimeBound

    Names = Mapping[tuple[int, str], str]


def bind(
    text: str, schemas: Schemas, *, event_time: EventTimes, typing: Typing | None = None
) -> Query:
    """Read a query over streams with the given schemas.

    `event_time` names the timestamp column that every stream must have, spelled as in the
    schemas, or that of each. A fault of the text is a `QueryError`, one of that column a plain
    `BraidError`.
    With a `typing` the types of all expressions are checked, without it those of columns alone.

    >>> import pyarrow as pa
    >>> flat = pa.schema({"k": pa.int64(), "ts": pa.timestamp("us")})
    >>> text = "select A.k from a [range 60 seconds], b [range 0.5 hours] where b.K = a.k"
    >>> bind(text, {"a": flat, "b": flat}, event_time="ts").text
    'SELECT a.k FROM a [RANGE 1 MINUTE], b [RANGE 30 MINUTES] WHERE a.k = b.k'
    """
    try:
        syntax = parse(text)
        scope = open_scope(syntax.streams, schemas)
        times = stream_times(scope, event_time)
        binder = _Binder(syntax, scope, times, Types(scope, typing))
        query, names = binder.query({})
        return binder.query(names)[0] if names else query
    except RecursionError as error:
        raise _too_deep(text) from error


def check_sources(text: str, known: Sequence[str]) -> None:
    """Raise an error if a query names a stream that is not known."""
    for item in parse(text).streams:
        find_source(item.source, known)


def sources(text: str) -> tuple[str, ...]:
    """The distinct streams that a query names, as it spells them, in the order of FROM.

    >>> sources("SELECT x.k FROM a [RANGE 1 DAY] x, b [RANGE 1 DAY], a [RANGE 1 DAY] z")
    ('a', 'b')
    """
    return tuple(dict.fromkeys(item.source.text for item in parse(text).streams))


@dataclass(frozen=True, slots=True)
class _Binder:
    """Binds one query."""

    syntax: Syntax
    scope: Scope
    times: tuple[EventTime, ...]
    types: Types

    def query(self, names: Names) -> tuple[Query, Names]:
        """The query, with the given names for derived columns; and all names that they need."""
        derivations = Derivations(self.scope, self.types, names, self._walls())
        lowering = Lowering(self.scope, derivations)
        sorter = Sorter(lowering, TimeReader(self.scope, self.times), self.types)
        conditions = sorter.sort(self.syntax.conditions)
        conditions.equalities[:0] = self._using()
        joins = join_keys(self.scope, self.types, self.syntax.streams, conditions.equalities)
        conditions.filters += joins.filters
        self._check_possible(conditions.bounds)
        keys = tuple(
            Key(tuple(derivations.column(side, self._home(side)) for side in key))
            for key in joins.keys
        )
        numbers = range(len(self.scope.aliases))
        filters = {number: conditions.filters_of(number) for number in numbers}
        texts = Texts(self.scope.aliases, derivations.found, filters)
        grouping, output = self._result(Selection(lowering, self.types, texts, self._entries()))
        query = Query(
            "",
            tuple(
                self._stream(number, derivations, filters[number], joins) for number in numbers
            ),
            keys,
            output,
            tuple(conditions.rest.values()),
            tightest([bound for bound, _ in conditions.bounds]),
            grouping,
        )
        text = normal_text(query, texts, time_names(self.times))
        if bracket_depth(read_words(text)) > DEEPEST:  # it could not be read again
            raise _too_deep(self.syntax.streams[0].source.place.text)
        return replace(query, text=text), derivations.settled_names()

    def _walls(self) -> dict[Column, Column]:
        return {
            Column(number, time.wall): Column(number, time.column)
            for number, time in enumerate(self.times)
            if time.wall is not None
        }

    def _home(self, side: Snippet) -> Place:
        return self.syntax.streams[side.stream].source.place

    def _entries(self) -> list[Entry]:
        return entries(self.scope, self.syntax.select, self.times)

    def _using(self) -> Iterator[Equality]:
        """The equalities of USING: a stream's column and the one of that name before it."""
        for number, item in enumerate(self.syntax.streams):
            for name in item.using:
                right = self.scope.column_of(number, name)
                left = self.scope.column_before(number, name)
                yield using_equality(self.scope, left, right, name.place)

    def _result(self, selection: Selection) -> tuple[Grouping | None, tuple[Output, ...]]:
        syntax = self.syntax
        windows = [item.window for item in syntax.streams]
        having = [syntax.having] if syntax.having is not None else []
        aggregated = is_grouped([*(entry.what for entry in selection.columns), *having])
        if syntax.group is None and not aggregated:
            if syntax.having is not None:
                raise syntax.having.place.error(
                    "HAVING is for groups, and this query has none",
                    hint="use WHERE, or GROUP BY",
                )
            refuse_slide(windows)
            return None, selection.plain()
        event_type = self.scope.type_of(0, self.times[0].column)
        groups = Groups(selection.lowering, self.types, event_type)
        every_us = slide_us(windows)
        return selection.grouped(groups, syntax.group or (), syntax.having, every_us)

    def _stream(
        self,
        number: int,
        derivations: Derivations,
        filters: Sequence[Snippet],
        joins: Joins,
    ) -> StreamRef:
        item = self.syntax.streams[number]
        parts = [side for key in joins.keys for side in key if side.stream == number]
        return StreamRef(
            self.scope.sources[number],
            self.scope.aliases[number],
            item.window.length_us,
            history(self.scope, number, item, parts),
            derivations.of(number),
            " AND ".join(made.sql for made in filters) or None,
        )

    def _check_possible(self, bounds: Sequence[tuple[TimeBound, Place]]) -> None:
        windows_us = [item.window.length_us for item in self.syntax.streams]
        number = first_impossible(windows_us, [bound for bound, _ in bounds])
        if number is not None:
            raise bounds[number][1].error(
                "no rows can fulfil this together with the windows and the bounds before it",
                hint="within a result no row is older than the newest by more than its window",
            )


def _too_deep(text: str) -> QueryError:
    return Place(text, 0, len(text)).error("the query is nested too deeply", hint=SIMPLER)
