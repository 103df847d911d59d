"""The normal form of a query: one text for all spellings of it, which binds to it again.

A checkpoint keeps it as a fingerprint, so this text must not change between releases, nor with
the version of sqlglot. Aliases and the order of streams, columns and keys are kept; conditions
are in the order of their kinds: keys, filters, bounds, others.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from braid.cql.quote import spelled
from braid.cql.spell import Level, Spelled, Speller, interval
from braid.model.duration import format_duration
from braid.model.expression import GROUPED, Call, Column, Expression
from braid.model.query import UNBOUNDED_US, WINDOW_END, Grouping, time_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from braid.cql.snippet import Snippet
    from braid.model.query import Aggregate, Output, Query, StreamRef, TimeBound, TimeNames


@dataclass(frozen=True, slots=True)
class Texts:
    """What a bound query leaves to Spark, as a query's text: columns and filters of streams."""

    aliases: Sequence[str]
    derived: Mapping[Column, Snippet]
    filters: Mapping[int, Sequence[Snippet]]

    def speller(self) -> Speller:
        """Spells expressions over the streams' columns."""
        return Speller(self.column)

    def column(self, column: Column) -> Spelled:
        """A column of a stream."""
        made = self.derived.get(column)
        if made is not None:
            return made.text, Level.ATOM if made.atomic else Level.ANY
        alias = self.aliases[column.stream]
        return f"{spelled(alias)}.{spelled(column.column)}", Level.ATOM

    def group_speller(self, grouping: Grouping) -> Speller:
        """Spells expressions over the columns of groups."""
        return Speller(
            lambda column: self._grouped(grouping, column),
            lambda expression: self._average(grouping, expression),
        )

    def _grouped(self, grouping: Grouping, column: Column) -> Spelled:
        if column.column == WINDOW_END:
            return WINDOW_END, Level.ATOM
        kind, number = column.column.split()
        if kind == "aggregate":
            return self.aggregate(grouping.aggregates[int(number)]), Level.ATOM
        key, speller = grouping.keys[int(number)], self.speller()
        text = speller.text(key)
        return text, Level.ATOM if speller.text(key, Level.ATOM) == text else Level.ANY

    def name(self, value: Expression, grouping: Grouping | None) -> str:
        """What a column of the result is called unless the query says it."""
        column = value if isinstance(value, Column) else None
        if column and grouping and column.column.startswith("key "):
            return self.name(grouping.keys[int(column.column.split()[1])], None)
        if column and column.stream != GROUPED and column not in self.derived:
            return column.column
        speller = self.speller() if grouping is None else self.group_speller(grouping)
        return speller.text(value)

    def aggregate(self, aggregate: Aggregate, name: str | None = None) -> str:
        """A call of an aggregate."""
        value = "*" if aggregate.value is None else self.speller().text(aggregate.value)
        return f"{name or aggregate.function}({value})"

    def _average(self, grouping: Grouping, expression: Expression) -> Spelled | None:
        """A sum divided by a count of the same, by the name that people know it by."""
        if not isinstance(expression, Call) or expression.function != "/":
            return None
        total, count = (_aggregate(grouping, each) for each in expression.arguments)
        if (
            total is None
            or count is None
            or (total.function, count.function) != ("sum", "count")
        ):
            return None
        if repr(total.value) != repr(count.value):
            return None
        return self.aggregate(total, "avg"), Level.ATOM


def _aggregate(grouping: Grouping, expression: Expression) -> Aggregate | None:
    if not isinstance(expression, Column) or not expression.column.startswith("aggregate "):
        return None
    return grouping.aggregates[int(expression.column.split()[1])]


def normal_text(query: Query, texts: Texts, event_time: TimeNames) -> str:
    """Write a bound query; its own `text` is not looked at."""
    grouping = query.grouping
    speller = texts.speller() if grouping is None else texts.group_speller(grouping)
    select = ", ".join(_output(out, texts, grouping) for out in query.output)
    slide_us = None if grouping is None else grouping.slide_us
    streams = ", ".join(
        _stream(stream, None if number else slide_us)
        for number, stream in enumerate(query.streams)
    )
    conditions = " AND ".join(_conditions(query, texts, event_time))
    text = f"SELECT {select} FROM {streams} WHERE {conditions}"
    if grouping is not None and grouping.keys:
        text += f" GROUP BY {', '.join(texts.speller().text(key) for key in grouping.keys)}"
    if grouping is not None and grouping.having is not None:
        text += f" HAVING {speller.text(grouping.having)}"
    return text


def _output(out: Output, texts: Texts, grouping: Grouping | None) -> str:
    speller = texts.speller() if grouping is None else texts.group_speller(grouping)
    text = speller.text(out.value)
    same = out.name == texts.name(out.value, grouping)
    return text if same else f"{text} AS {spelled(out.name)}"


def _stream(stream: StreamRef, slide_us: int | None) -> str:
    if stream.history is not None:
        columns = ", ".join(spelled(column) for column in stream.history.partition)
        window = f"PARTITION BY {columns} ROWS {stream.history.rows}"
    elif stream.window_us == UNBOUNDED_US:
        window = "UNBOUNDED"
    else:
        window = f"RANGE {_length(stream.window_us)}"
    slide = "" if slide_us is None else f" SLIDE {_length(slide_us)}"
    text = f"{spelled(stream.source)} [{window}{slide}]"
    return text if stream.alias == stream.source else f"{text} AS {spelled(stream.alias)}"


def _length(length_us: int) -> str:
    whole, rest = divmod(length_us, 1000)
    return f"{whole}.{rest:03} MILLISECONDS" if rest else format_duration(length_us).upper()


def _conditions(query: Query, texts: Texts, event_time: TimeNames) -> Iterator[str]:
    speller = texts.speller()
    for key in query.keys:
        columns = [speller.text(column, Level.SUM) for column in key.columns]
        yield from (f"{left} = {right}" for left, right in pairwise(columns))
    for number in range(len(query.streams)):
        yield from (made.text for made in texts.filters.get(number, ()))
    yield from (_bound(bound, texts, event_time) for bound in query.bounds)
    yield from (speller.text(condition, Level.NOT) for condition in query.conditions)


def _bound(bound: TimeBound, texts: Texts, event_time: TimeNames) -> str:
    times = (time_column(event_time, stream) for stream in (bound.stream, bound.other))
    one, other = (texts.column(time)[0] for time in times)
    if not bound.most_us:
        return f"{one} <= {other}"
    return f"{one} - {other} <= {interval(dt.timedelta(microseconds=bound.most_us))}"
