"""Tables as streams, a batch each, for a run in this process."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from braid.cql.event_time import EventTime
from braid.cql.own_expression import own_expression
from braid.engine.calibrate import measure_operations
from braid.engine.clock import instant_clock
from braid.evaluator import evaluate, holds, type_of
from braid.evaluator.like_spark import difference
from braid.local.cluster import LocalCluster
from braid.local.feed import LocalFeed
from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from braid.engine.clock import Shown
    from braid.engine.folder import FileStream
    from braid.engine.loop import BatchLoop
    from braid.engine.sources import Reading
    from braid.local.split import StreamRows
    from braid.model.expression import Column, Expression
    from braid.model.query import Query, TimeNames
    from braid.optimize.cost_model import IndexProbes
    from braid.plan.join_plan import JoinPlan
    from braid.record.checkpoint import Checkpoint

_INSTANT = pa.timestamp("us", "UTC")


def read_tables(
    streams: Mapping[str, pa.Table | Sequence[pa.Table]],
) -> dict[str, list[pa.Table]]:
    """The batches of each stream, in the types that Spark has."""
    found: dict[str, list[pa.Table]] = {}
    for name, given in streams.items():
        batches = [given] if isinstance(given, pa.Table) else list(given)
        if not batches or not all(isinstance(each, pa.Table) for each in batches):
            raise BraidError(
                f"stream {name!r} is no table of pyarrow, nor a list of such tables",
                hint="give one table for each batch: [pa.table(…), …]",
            )
        if any(each.schema != batches[0].schema for each in batches):
            raise BraidError(f"the batches of stream {name!r} have different columns")
        found[name] = [_as_spark(each) for each in batches]
    return found


def _as_spark(table: pa.Table) -> pa.Table:
    """A table with the types of columns that Spark reads from files."""
    return table.cast(pa.schema([each.with_type(_kind(each.type)) for each in table.schema]))


def _kind(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


@dataclass(frozen=True)
class LocalTyping:
    """Takes expressions of which it is known that they are here what they are in Spark."""

    schemas: Mapping[str, pa.Schema]

    def derived(self, source: str, sql: str) -> pa.DataType:
        """The type of an expression over a source's own columns."""
        expression, types = self._read(source, sql)
        why = difference(expression, types)
        if why is not None:
            raise BraidError(
                f"this is not known to be the same without Spark: {why}",
                hint="leave it to Spark, or compute it in the table, before the query",
            )
        return type_of(expression, types)

    def expression(self, source: str, sql: str) -> Expression:
        """An expression that has been found to be the same."""
        return self._read(source, sql)[0]

    def _read(
        self, source: str, sql: str
    ) -> tuple[Expression, Callable[[Column], pa.DataType]]:
        schema = self.schemas[source]
        return own_expression(source, schema, sql), lambda c: schema.field(c.column).type

    def combined(
        self, expression: Expression, types: Callable[[Column], pa.DataType]
    ) -> pa.DataType:
        """The type of an expression over several streams."""
        return type_of(expression, types)


@dataclass(frozen=True)
class LocalSources:
    """The batches of each stream; `clock_us` tells the time."""

    batches: Mapping[str, Sequence[pa.Table]]
    times: Mapping[str, str]
    cores: int
    clock_us: Callable[[], int] | None = None

    def __post_init__(self) -> None:
        """Refuse event times that cannot be compared with one another here."""
        kinds = {self.schemas[s].field(time).type.tz for s, time in self.times.items()}
        if len(kinds) > 1:
            raise BraidError(
                "some event times have a time zone, and others have none",
                hint="give all of them one, or none: pa.timestamp('us', 'UTC')",
            )

    @cached_property
    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of the streams."""
        return {name: batches[0].schema for name, batches in self.batches.items()}

    @property
    def typing(self) -> LocalTyping:
        """The types of expressions over the streams."""
        return LocalTyping(self.schemas)

    @property
    def event_times(self) -> dict[str, EventTime]:
        """The event times of the streams."""
        return {name: EventTime(time) for name, time in self.times.items()}

    zone = "UTC"

    def describe_times(self, names: TimeNames) -> str:
        """The event times as a checkpoint knows them."""
        times = ", ".join(f"{source}={time}" for source, time in sorted(self.times.items()))
        return names if isinstance(names, str) else times

    def clock(self, *, is_wall: bool) -> Shown:
        """A clock in UTC, for either kind of event times."""
        return instant_clock

    def now_us(self) -> int:
        """The time by this process's clock, or by the one that was given."""
        return time.time_ns() // 1000 if self.clock_us is None else self.clock_us()

    def costs(self, *, several_keys: bool) -> IndexProbes:
        """What the operations of a join cost; to send rows costs nothing here."""
        return measure_operations()

    def check(self, query: Query) -> None:
        """All that is bound can be run."""

    def check_start(self) -> None:
        """A run can always begin."""

    def check_name(self, name: str) -> None:
        """Names need not be unique."""

    def folders(self, places: Collection[Path]) -> Iterator[tuple[str, FileStream]]:
        """No folder is read."""
        return iter(())

    def as_known(self, known: Mapping[str, Any]) -> None:
        """Tables tell their columns."""

    def supply(self, checkpoint: Checkpoint) -> LocalSupply:
        """The same, for a run on a checkpoint."""
        return LocalSupply(self, checkpoint)

    def rows(self, query: Query) -> list[StreamRows]:
        """By batch, the rows of each stream that pass its filter, with derived columns."""
        count = max(map(len, self.batches.values()))
        return [
            {
                number: self._rows(query, number, self.batches[stream.source][batch])
                for number, stream in enumerate(query.streams)
                if batch < len(self.batches[stream.source])
            }
            for batch in range(count)
        ]

    def _rows(self, query: Query, number: int, table: pa.Table) -> pa.Table:
        stream, typing = query.streams[number], self.typing

        def fetch(column: Column) -> pa.Array:
            return table.column(column.column).combine_chunks()

        if stream.filter is not None:
            condition = typing.expression(stream.source, stream.filter)
            table = table.filter(pa.array(holds(condition, fetch, table.num_rows)))
        values = {
            each.name: evaluate(
                typing.expression(stream.source, each.sql), fetch, table.num_rows
            )
            for each in stream.derived
        }
        for name, value in values.items():
            table = table.append_column(name, value)
        return table


@dataclass(frozen=True, slots=True)
class LocalSupply:
    """Tables, from where a checkpoint stands."""

    sources: LocalSources
    checkpoint: Checkpoint

    def check_offsets(self) -> None:
        """There is no other part of a checkpoint."""

    def note_columns(self) -> None:
        """Tables tell their columns."""

    def read_files(self, position: dict[str, Any] | None) -> None:
        """No files are read."""

    def results(self, folder: Path) -> pa.Table:
        """Results that workers have staged in a folder."""
        return pa.concat_tables(map(pq.read_table, sorted(folder.glob("*.parquet"))))

    def cluster(
        self,
        plan: JoinPlan,
        *,
        workers: int,
        name: str,
        memory_bytes: int | None,
        keeps_bad: bool,
    ) -> LocalCluster:
        """Workers whose files are in a folder that goes with them."""
        if keeps_bad:
            raise BraidError(
                "rows cannot be bad without Spark: expressions that fail are refused",
                hint="leave bad_rows out",
            )
        folder = tempfile.TemporaryDirectory(prefix="braid-local-")
        place = Path(folder.name)
        return LocalCluster(
            plan.query,
            workers,
            place,
            self.checkpoint.log,
            memory_bytes,
            on_close=folder.cleanup,
        )

    def feed(self, loop: BatchLoop, cluster: LocalCluster, reading: Reading) -> LocalFeed:
        """Begin to bring the batches to the engine."""
        return LocalFeed(self.sources.rows(loop.engine.plan.query), loop)
