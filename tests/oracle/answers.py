"""DuckDB's answer to a bound query, and how to compare answers."""

from __future__ import annotations

import atexit
import datetime as dt
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from braid.model.expression import Column, Expression
from braid.model.query import WINDOW_END, Grouping, Query, StreamRef
from tests.oracle.duckdb_sql import from_spark, quoted, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def oracle(
    query: Query, rows: Sequence[pa.Table], event_time: str, *, closed_us: int | None = None
) -> pa.Table:
    """DuckDB's answer over all rows at once.

    `rows` are the streams' own columns, by the stream's number. `closed_us` is for grouped
    queries: the last moment to answer for.
    """
    combinations = _Combinations(query, event_time)
    if query.grouping is None:
        outputs = ((out.value, out.name) for out in query.output)
        select = combinations.select([(_streams(value), name) for value, name in outputs])
        return _run(rows, f"{combinations.streams()} {select}")
    if closed_us is None:
        raise ValueError("a grouped query has an answer only up to some moment")
    zoned = rows[0].schema.field(event_time).type.tz is not None
    return _run(rows, _grouped(query, query.grouping, combinations, closed_us, zoned))


def prepared(ref: StreamRef, rows: pa.Table) -> pa.Table:
    """What Catalyst makes of a stream's rows: derived columns added, the filter applied."""
    return _run([rows], _prepare(ref, "rows0"))


def _run(rows: Sequence[pa.Table], sql: str) -> pa.Table:
    db = database()
    for number, table in enumerate(rows):
        db.register(f"rows{number}", table)
    try:
        return db.sql(sql).to_arrow_table()
    finally:
        for number in range(len(rows)):
            db.unregister(f"rows{number}")


@cache
def database() -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory for hundreds of small questions."""
    db = duckdb.connect()
    db.execute("SET TimeZone='UTC'")
    db.execute("SET threads=1")
    atexit.register(database.cache_clear)  # or its binding complains of a leak
    return db


def _prepare(ref: StreamRef, table: str) -> str:
    derived = [f"{from_spark(d.sql)} AS {quoted(d.name)}" for d in ref.derived]
    where = f" WHERE {from_spark(ref.filter)}" if ref.filter else ""
    return f"SELECT {', '.join(['*', *derived])} FROM {table}{where}"


class _Combinations:
    """The rows of all streams that belong together, as FROM and WHERE."""

    def __init__(self, query: Query, event_time: str) -> None:
        self.query = query
        self.time = quoted(event_time)
        self.times = [f"epoch_us(s{n}.{self.time})" for n in range(len(query.streams))]
        self.newest = f"greatest({', '.join(self.times)})"

    def streams(self) -> str:
        """The streams as Catalyst hands them on: `s0`, `s1`, …"""
        streams = (
            f"s{n} AS MATERIALIZED ({_prepare(ref, f'rows{n}')})"
            for n, ref in enumerate(self.query.streams)
        )
        return f"WITH {', '.join(streams)}"

    def select(self, outputs: Sequence[tuple[str, str]]) -> str:
        columns = ", ".join(f"{sql} AS {quoted(name)}" for sql, name in outputs)
        tables = ", ".join(f"s{n}" for n in range(len(self.query.streams)))
        return f"SELECT {columns} FROM {tables} WHERE {' AND '.join(self._conditions())}"

    def _conditions(self) -> Iterator[str]:
        for key in self.query.keys:
            first, *others = (_streams(column) for column in key.columns)
            yield from (f"{first} = {other}" for other in others)
        for number, ref in enumerate(self.query.streams):
            yield f"{self.times[number]} IS NOT NULL"
            yield f"{self.newest} - {self.times[number]} <= {ref.window_us}"
            if ref.history is not None:
                yield f"{self._newer(number, ref.history.partition)} < {ref.history.rows}"
        for bound in self.query.bounds:
            yield f"{self.times[bound.stream]} - {self.times[bound.other]} <= {bound.most_us}"
        yield from map(_streams, self.query.conditions)

    def _newer(self, number: int, partition: Sequence[str]) -> str:
        """How many rows of a row's partition came after it, up to the combination's time."""
        same = "".join(
            f"newer.{quoted(name)} IS NOT DISTINCT FROM s{number}.{quoted(name)} AND "
            for name in partition
        )
        time = f"epoch_us(newer.{self.time})"
        return (
            f"(SELECT count(*) FROM s{number} AS newer WHERE {same}"
            f"{time} > {self.times[number]} AND {time} <= {self.newest})"
        )


def _grouped(
    query: Query, grouping: Grouping, combinations: _Combinations, closed_us: int, zoned: bool
) -> str:
    assert all(ref.history is None for ref in query.streams), "groups over histories"
    parts = [(_streams(key), f"key {n}") for n, key in enumerate(grouping.keys)]
    parts += [
        (_streams(aggregate.value), f"value {n}")
        for n, aggregate in enumerate(grouping.aggregates)
        if aggregate.value is not None
    ]
    parts += [(time, f"time {n}") for n, time in enumerate(combinations.times)]
    parts += [(combinations.newest, "newest")]
    slide = grouping.slide_us
    keys = [quoted(f"key {n}") for n in range(len(grouping.keys))]
    aggregates = [
        f"{a.function}({'*' if a.value is None else quoted(f'value {n}')}) "
        f"AS {quoted(f'aggregate {n}')}"
        for n, a in enumerate(grouping.aggregates)
    ]
    inside = [
        f"moment - {quoted(f'time {n}')} <= {ref.window_us}"
        for n, ref in enumerate(query.streams)
    ]
    make = "make_timestamptz" if zoned else "make_timestamp"
    having = _groups(grouping.having) if grouping.having is not None else "true"
    outputs = ", ".join(f"{_groups(out.value)} AS {quoted(out.name)}" for out in query.output)
    return f"""
        {combinations.streams()},
        combination AS MATERIALIZED ({combinations.select(parts)}),
        moment AS (
            SELECT unnest(generate_series(lower, {closed_us}, {slide})) AS moment
            FROM (SELECT min(newest + (-newest % {slide} + {slide}) % {slide}) AS lower
                  FROM combination)
        ),
        grouped AS (
            SELECT {", ".join([*keys, *aggregates])}{"," if keys or aggregates else ""}
                {make}(moment) AS {WINDOW_END}
            FROM combination JOIN moment
            ON moment >= newest AND {" AND ".join(inside)}
            GROUP BY {", ".join(["moment", *keys])}
        )
        SELECT {outputs} FROM grouped WHERE {having}
    """


def _streams(expression: Expression) -> str:
    """An expression over the streams' columns."""
    return written(expression, lambda column: f"s{column.stream}.{quoted(column.column)}")


def _groups(expression: Expression) -> str:
    """An expression over the columns of a group."""
    return written(expression, lambda column: quoted(column.column))


def counted(table: pa.Table, query: Query | None = None) -> Counter[tuple[Any, ...]]:
    """A table as a multiset of rows; see `counted_rows`."""
    columns = [column.to_pylist() for column in table.columns]
    return counted_rows(zip(*columns, strict=True), query)


def counted_rows(
    rows: Iterable[tuple[Any, ...]], query: Query | None = None
) -> Counter[tuple[Any, ...]]:
    """A multiset of rows.

    Floats count as equal in their first nine digits, so that the order in which they were
    summed does not matter. Zeros have a sign only in columns that a query hands through.
    """
    signed = set()
    if query is not None and query.grouping is None:
        signed = {n for n, out in enumerate(query.output) if isinstance(out.value, Column)}
    return Counter(tuple(_plain(v, n in signed) for n, v in enumerate(row)) for row in rows)


def _plain(value: Any, signed: bool) -> Any:
    """A value that compares and hashes as results should."""
    match value:
        case float():
            return f"{value if signed else value + 0.0:.9g}"
        case pa.MonthDayNano(months=0, days=days, nanoseconds=nanoseconds):
            return dt.timedelta(days, microseconds=nanoseconds // 1000)
        case list() | dict():
            return repr(value)
    return value
