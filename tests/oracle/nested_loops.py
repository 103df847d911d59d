"""The answer to a bound query by nested loops over Python values.

Independent of DuckDB and of the engine, and simple enough to be checked by reading: it follows
the docstrings of `braid.model.query` word by word. For small inputs only.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from braid.model.query import WINDOW_END, Aggregate, Grouping, History, Query, StreamRef
from tests.oracle.row_values import rank, value_of
from tests.oracle.spark_texts import MEANING

if TYPE_CHECKING:
    import pyarrow as pa

    from braid.model.expression import Column, Expression

Row = Mapping[str, Any]
TIME = "event time in microseconds"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def nested_loops(
    query: Query, rows: Sequence[pa.Table], event_time: str, *, closed_us: int | None = None
) -> list[tuple[Any, ...]]:
    """The rows of the answer; see `tests.oracle.answers.oracle`."""
    streams = [
        list(_prepared(ref, table.to_pylist(), event_time))
        for ref, table in zip(query.streams, rows, strict=True)
    ]
    combinations = [c for c in itertools.product(*streams) if _belongs(query, streams, c)]
    if query.grouping is None:
        return [tuple(value_of(o.value, _cell(c)) for o in query.output) for c in combinations]
    assert closed_us is not None
    zoned = rows[0].schema.field(event_time).type.tz is not None
    moments = _moments(combinations, query.grouping.slide_us, closed_us)
    return [
        row
        for moment in moments
        for row in _groups(query, query.grouping, combinations, moment, zoned)
    ]


def _prepared(ref: StreamRef, rows: Iterable[Row], event_time: str) -> Iterator[Row]:
    """Rows with derived columns, that pass the filter and have an event time."""
    for row in rows:
        if row[event_time] is None or (ref.filter and MEANING[ref.filter](row) is not True):
            continue
        derived = {each.name: MEANING[each.sql](row) for each in ref.derived}
        yield {**row, **derived, TIME: _microseconds(row[event_time])}


def _microseconds(moment: dt.datetime) -> int:
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (zoned - EPOCH) // dt.timedelta(microseconds=1)


def _cell(combination: Sequence[Row]) -> Callable[[Column], Any]:
    return lambda column: combination[column.stream][column.column]


def _belongs(query: Query, streams: Sequence[Sequence[Row]], rows: Sequence[Row]) -> bool:
    newest = max(row[TIME] for row in rows)
    return (
        all(_equal([rows[c.stream][c.column] for c in key.columns]) for key in query.keys)
        and all(
            newest - row[TIME] <= ref.window_us
            for ref, row in zip(query.streams, rows, strict=True)
        )
        and all(rows[b.stream][TIME] - rows[b.other][TIME] <= b.most_us for b in query.bounds)
        and all(value_of(condition, _cell(rows)) is True for condition in query.conditions)
        and all(
            ref.history is None or _recent(ref.history, stream, row, newest)
            for ref, stream, row in zip(query.streams, streams, rows, strict=True)
        )
    )


def _equal(values: Sequence[Any]) -> bool:
    return None not in values and all(rank(values[0], value) == 0 for value in values[1:])


def _recent(history: History, stream: Sequence[Row], row: Row, moment_us: int) -> bool:
    """Whether fewer than n rows of the row's partition are newer, up to a moment."""
    newer = [
        other
        for other in stream
        if row[TIME] < other[TIME] <= moment_us
        and all(_same(row[name], other[name]) for name in history.partition)
    ]
    return len(newer) < history.rows


def _same(left: Any, right: Any) -> bool:
    """Whether two values belong into one partition or group, where nulls are equal."""
    if left is None or right is None:
        return left is right
    return rank(left, right) == 0


def _moments(combinations: Sequence[Sequence[Row]], slide_us: int, closed_us: int) -> range:
    if not combinations:
        return range(0)
    first = min(max(row[TIME] for row in rows) for rows in combinations)
    return range(-(-first // slide_us) * slide_us, closed_us + 1, slide_us)


def _groups(
    query: Query,
    grouping: Grouping,
    combinations: Sequence[Sequence[Row]],
    moment: int,
    zoned: bool,
) -> Iterator[tuple[Any, ...]]:
    """The rows of all groups at one moment."""
    groups: dict[tuple[Any, ...], list[Sequence[Row]]] = defaultdict(list)
    for rows in combinations:
        if all(
            moment - ref.window_us <= row[TIME] <= moment
            for ref, row in zip(query.streams, rows, strict=True)
        ):
            groups[tuple(_hashed(value_of(k, _cell(rows))) for k in grouping.keys)].append(rows)
    for members in groups.values():
        group = _group(grouping, members)
        end = EPOCH + dt.timedelta(microseconds=moment)
        group[WINDOW_END] = end if zoned else end.replace(tzinfo=None)
        cell = partial(_grouped_cell, group)
        if grouping.having is None or value_of(grouping.having, cell) is True:
            yield tuple(value_of(out.value, cell) for out in query.output)


def _hashed(value: Any) -> Any:
    """A key that finds its group: NaN is one, and the two zeros are the same."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _grouped_cell(group: Row, column: Column) -> Any:
    return group[column.column]


def _group(grouping: Grouping, members: Sequence[Sequence[Row]]) -> dict[str, Any]:
    keys = {f"key {n}": value_of(key, _cell(members[0])) for n, key in enumerate(grouping.keys)}
    aggregates = {
        f"aggregate {n}": _aggregate(aggregate, members)
        for n, aggregate in enumerate(grouping.aggregates)
    }
    return {**keys, **aggregates}


def _aggregate(aggregate: Aggregate, members: Sequence[Sequence[Row]]) -> Any:
    if aggregate.value is None:
        return len(members)
    values = _values(aggregate.value, members)
    if aggregate.function == "count":
        return len(values)
    if not values:
        return None
    if aggregate.function == "sum":
        return sum(values)
    sign = {"max": 1, "min": -1}[aggregate.function]
    best = values[0]
    for value in values[1:]:
        best = value if sign * rank(value, best) > 0 else best
    return best


def _values(expression: Expression, members: Sequence[Sequence[Row]]) -> list[Any]:
    values = (value_of(expression, _cell(rows)) for rows in members)
    return [value for value in values if value is not None]
