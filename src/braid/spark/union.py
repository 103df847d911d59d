"""All streams' rows in frames of one form: the same for all plans, so that a plan can change.

What Spark brings of a batch is one frame, and opaque: it can be read as often as one likes, but
not looked into, and Spark's offsets name the sources of the query that it was started with. So
all that depends on a plan comes behind it (`braid.spark.split`), and here is what does not:
filters, derived columns, and the time. What is read from files is a frame for each stream, for
Spark plans a batch sooner that way. The columns are

* `stream`: the stream's number;
* `at`: the event time as on the wire (`braid.plan.wire`), with an empty tag, or with the one
  that says why the row can never join;
* `column0`, …: typed places that the streams share, as they share slots on the wire.

Everything is an expression over columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql.types import TimestampNTZType

from braid.model.expression import Column
from braid.model.query import time_column
from braid.plan.wire import (
    BAD_ROW,
    LATEST_US,
    NULL_KEY,
    NULL_TIME,
    OUT_OF_RANGE,
    TAG_BITS,
    take_slots,
)
from braid.spark.bad_rows import BAD, tried
from braid.spark.event_time import DAYS, MOST_DAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from braid.model.query import Key
    from braid.plan.join_plan import JoinPlan

Gathered: TypeAlias = "Mapping[tuple[int, ...], DataFrame]"
"""The rows of a batch: frames, by the streams that they are of. Each stream is in one.

A batch without rows has no frames.
"""


@dataclass(frozen=True, slots=True)
class _Branch:
    """One stream's way into that form, as text for Spark: asking it in Python takes longer."""

    source: str
    time: tuple[str, str] | None
    filter: str | None
    derived: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    shown: tuple[str, ...] | None  # of bad rows; they are an error if there is nothing to show

    def of(self, frame: DataFrame) -> DataFrame:
        """A source's rows in that form."""
        if self.shown is not None:
            frame = tried(frame, self.time, self.filter, self.derived, self.shown)
            return frame.selectExpr(*self.columns, BAD)
        if self.time is not None:
            frame = frame.selectExpr("*", _named(self.time))
        if self.filter is not None:
            frame = frame.filter(self.filter)
        if self.derived:
            frame = frame.selectExpr("*", *map(_named, self.derived))
        return frame.selectExpr(*self.columns)


@dataclass(frozen=True, slots=True)
class StreamUnion:
    """How all streams' rows get one form, and where their columns are in it."""

    branches: tuple[_Branch, ...]
    types: tuple[pa.DataType, ...]
    places: Mapping[Column, int]
    keys: tuple[Key, ...]

    @classmethod
    def of(
        cls,
        plan: JoinPlan,
        schemas: Mapping[str, StructType],
        computed: Mapping[str, str] | None = None,
        shown: Mapping[str, Sequence[str]] | None = None,
    ) -> StreamUnion:
        """That of a query, by any of its plans, over sources with these columns.

        `computed` are event times that Spark has to compute, as SQL by source. If there are
        columns to be `shown` of bad rows, by source, such rows go apart.
        """
        types: list[pa.DataType] = []
        places: dict[Column, int] = {}
        for stream in plan.streams:
            columns = list(dict.fromkeys(_columns(plan, stream)))
            kinds = [plan.wire.types[column] for column in columns]
            places |= zip(columns, take_slots(types, kinds), strict=True)
        branches = [
            _branch(plan, stream, schemas, computed or {}, shown, places, len(types))
            for stream in plan.streams
        ]
        return cls(tuple(branches), tuple(types), places, plan.query.keys)

    @property
    def keeps_bad(self) -> bool:
        """Whether bad rows go apart."""
        return any(branch.shown is not None for branch in self.branches)

    def apart(self, frames: Mapping[str, DataFrame]) -> Gathered:
        """A frame for each stream; `frames` are by source."""
        branches = enumerate(self.branches)
        return {(stream,): branch.of(frames[branch.source]) for stream, branch in branches}

    def together(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        """All streams in one frame."""
        return united(self.apart(frames).values())

    def gathered(self, rows: DataFrame) -> Gathered:
        """What has come of all streams in one frame."""
        return {tuple(range(len(self.branches))): rows}

    def name(self, column: Column) -> str:
        """Where a stream's column is."""
        return f"column{self.places[column]}"

    def hashable(self, column: Column) -> str:
        """A key column such that equal keys hash alike."""
        return hashable(self.name(column), self.types[self.places[column]])


def united(frames: Iterable[DataFrame]) -> DataFrame:
    """The rows of some frames with the same columns."""
    return reduce(lambda left, right: left.unionAll(right), frames)


def hashable(name: str, kind: pa.DataType) -> str:
    """A key such that equal keys hash alike: adding zero turns -0.0 into 0.0."""
    if not pa.types.is_floating(kind):
        return name
    return f"({name} + CAST(0 AS {'float' if pa.types.is_float32(kind) else 'double'}))"


def _columns(plan: JoinPlan, stream: int) -> Iterator[Column]:
    """What any plan needs of a stream's row besides its time; keys first, so that they meet."""
    for key in plan.query.keys:
        if (name := key.of(stream)) is not None:
            yield Column(stream, name)
    relation = next(
        port.relation
        for a_round in plan.rounds.rounds
        for port in a_round.ports
        if port.relation.streams == (stream,)
    )
    time = time_column(plan.wire.event_time, stream)
    yield from (column for column in relation.columns if column != time)


def _branch(
    plan: JoinPlan,
    stream: int,
    schemas: Mapping[str, StructType],
    computed: Mapping[str, str],
    shown: Mapping[str, Sequence[str]] | None,
    places: Mapping[Column, int],
    width: int,
) -> _Branch:
    ref = plan.query.streams[stream]
    keys = [name for key in plan.query.keys if (name := key.of(stream)) is not None]
    is_null = " OR ".join(f"{_quoted(name)} IS NULL" for name in keys)
    time = time_column(plan.wire.event_time, stream).column
    at = _microseconds(time, schemas[ref.source])
    fits = f"{at} > -{LATEST_US}L AND {at} < {LATEST_US}L"
    sql = computed.get(ref.source)
    bad = "" if shown is None else f" WHEN {BAD} IS NOT NULL THEN {BAD_ROW}L"
    filled = {places[column]: column.column for column in places if column.stream == stream}
    return _Branch(
        source=ref.source,
        time=None if sql is None else (sql, time),
        filter=ref.filter,
        derived=tuple((column.sql, column.name) for column in ref.derived),
        columns=(
            f"{stream} AS stream",
            f"CASE{bad} WHEN {is_null} THEN {NULL_KEY}L"
            f" WHEN {fits} THEN shiftleft({at}, {TAG_BITS})"
            f" WHEN {_quoted(time)} IS NULL THEN {NULL_TIME}L"
            f" ELSE {OUT_OF_RANGE}L END AS at",
            *(
                # A null gets its type from the streams that have a value here.
                f"{_quoted(filled[place]) if place in filled else 'NULL'} AS column{place}"
                for place in range(width)
            ),
        ),
        shown=None if shown is None else tuple(shown[ref.source]),
    )


def _named(column: tuple[str, str]) -> str:
    sql, name = column
    return f"({sql}) AS {_quoted(name)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _microseconds(name: str, schema: StructType) -> str:
    """An event time as microseconds since 1970, whatever the session's time zone."""
    q = _quoted(name)
    if not isinstance(schema[name].dataType, TimestampNTZType):
        return f"unix_micros({q})"
    days = DAYS.format(q)
    return (
        f"(CASE WHEN abs({days}) <= {MOST_DAYS} THEN {days} * 86400000000L"
        f" + hour({q}) * 3600000000L + minute({q}) * 60000000L"
        f" + cast(extract(SECOND FROM {q}) * 1000000 AS bigint) END)"
    )
