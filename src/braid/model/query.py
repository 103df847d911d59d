"""A bound query: which streams, over which windows, on which keys, and what comes out.

Made by `braid.cql` from text and schemas. Column names here are known to exist and the columns
of a key to agree in type; nothing downstream checks them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.model.expression import Column

if TYPE_CHECKING:
    from braid.model.expression import Expression

Schemas = Mapping[str, pa.Schema]
"""The columns of every stream that a query may name."""

UNBOUNDED_US = 1 << 60
"""The length of a window without end; twice this still fits 64 bits."""

TimeNames = str | tuple[str, ...]
"""The name of the event-time column: the same in all streams, or one for each."""

WINDOW_END = "window_end"
"""The column of a grouped query that says for which moment a row holds."""


def time_column(names: TimeNames, stream: int) -> Column:
    """The column of a stream's event time."""
    return Column(stream, names if isinstance(names, str) else names[stream])


@dataclass(frozen=True, slots=True)
class History:
    """`[PARTITION BY columns ROWS n]`: of each partition, the last n rows.

    A row takes part in results up to the moment T at which `rows` rows of its partition have an
    event time after its own, and up to T.
    """

    partition: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Derived:
    """A column that Catalyst computes before the split: SQL over its stream's own columns."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class StreamRef:
    """One place of a stream in FROM; a self-join has two of the same source.

    Rows of this stream take part in a result for as long as no member of the result is
    more than `window_us` younger: `max(ts) - ts_i <= window_us`, bounds included. Rows that do
    not pass `filter`, which is Spark SQL over the stream's own columns, take no part at all.
    """

    source: str
    alias: str
    window_us: int
    history: History | None = None
    derived: tuple[Derived, ...] = ()
    filter: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """Columns that must be equal: at most one of each stream, by the stream's number."""

    columns: tuple[Column, ...]

    def of(self, stream: int) -> str | None:
        """The column of one stream, if it takes part."""
        return next((c.column for c in self.columns if c.stream == stream), None)

    @property
    def streams(self) -> frozenset[int]:
        """The streams that the key connects."""
        return frozenset(column.stream for column in self.columns)


@dataclass(frozen=True, slots=True)
class TimeBound:
    """A condition on two event times: `ts_stream - ts_other <= most_us`."""

    stream: int
    other: int
    most_us: int


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over a group's combinations; `count` without a value counts them all."""

    function: str  # count, sum, min, max
    value: Expression | None


def sum_type(kind: pa.DataType) -> pa.DataType | None:
    """The type of a sum: integers in 64 bits, floats as double, decimals at their widest."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.decimal128(38, kind.scale) if pa.types.is_decimal(kind) else None


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUP BY: at every multiple T of `slide_us`, one row per group.

    Columns of `GROUPED` name the parts: `key 0`, `key 1`, …, `aggregate 0`, …, and WINDOW_END.
    The query's output and `having` are expressions over these alone. An average is a sum
    divided by a count.
    """

    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    slide_us: int
    having: Expression | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """An m-way window join; streams are numbered by their place in FROM.

    `keys` connect all streams. `conditions` each need columns of several streams.
    """

    text: str
    streams: tuple[StreamRef, ...]
    keys: tuple[Key, ...]
    output: tuple[Output, ...]
    conditions: tuple[Expression, ...] = ()
    bounds: tuple[TimeBound, ...] = ()
    grouping: Grouping | None = None

    def sources(self) -> tuple[str, ...]:
        """The distinct sources, in the order of FROM."""
        return tuple(dict.fromkeys(stream.source for stream in self.streams))

    def results(self) -> Iterator[Expression]:
        """The expressions that are computed of complete combinations."""
        if self.grouping is None:
            yield from (out.value for out in self.output)
        else:
            yield from self.grouping.keys
            yield from (a.value for a in self.grouping.aggregates if a.value is not None)
