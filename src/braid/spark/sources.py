"""The streams of a query, as Spark reads them: streaming DataFrames, or folders of files."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType

from braid.engine.clock import instant_clock
from braid.engine.folder import FileStream
from braid.model.errors import BraidError
from braid.spark.calibrate import measure_costs
from braid.spark.clock import time_zone, wall_clock
from braid.spark.event_time import source_times
from braid.spark.faults import require_spark
from braid.spark.files import FolderReader
from braid.spark.paths import local_inputs, named_by
from braid.spark.session import session
from braid.spark.supply import SparkSupply
from braid.spark.typing import SparkTyping

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from braid.cql.event_time import EventTime
    from braid.engine.clock import Shown
    from braid.model.query import Query, TimeNames
    from braid.optimize.cost_model import IndexProbes
    from braid.record.checkpoint import Checkpoint
    from braid.spark.event_time import SourceTime
    from braid.spark.files import FileColumns

Stream = DataFrame | FileStream
"""What a query reads: a streaming DataFrame, or a folder of files."""

Frame: TypeAlias = DataFrame
"""What callbacks get."""


@dataclass(frozen=True)
class SparkSources:
    """DataFrames, or readers of folders, by name; and the times of their events."""

    spark: SparkSession
    frames: Mapping[str, DataFrame]
    readers: Mapping[str, FolderReader]
    times: Mapping[str, SourceTime]

    @classmethod
    def open(
        cls,
        streams: Mapping[str, Stream],
        spark: SparkSession,
        event_time: str | Mapping[str, str],
        known: Mapping[str, FileColumns] | None = None,
    ) -> SparkSources:
        """Learn the columns of streams; those of some folders may be known already."""
        found = known or {}
        readers = {
            name: FolderReader.open(stream, spark, found.get(name))
            for name, stream in streams.items()
            if isinstance(stream, FileStream)
        }
        frames = {n: each for n, each in streams.items() if isinstance(each, DataFrame)}
        sources = cls(spark, frames, readers, {})
        schemas = {name: arrow_columns(schema) for name, schema in sources.own.items()}
        typing = SparkTyping(spark, sources.own)
        return cls(spark, frames, readers, source_times(event_time, schemas, typing.derived))

    @property
    def own(self) -> dict[str, StructType]:
        """The columns of the streams themselves."""
        columns = {name: reader.schema for name, reader in self.readers.items()}
        return columns | {name: frame.schema for name, frame in self.frames.items()}

    @cached_property
    def columns(self) -> dict[str, StructType]:
        """The columns of the streams, with computed event times."""
        own = self.own
        return {name: each.with_spark(own[name]) for name, each in self.times.items()}

    @cached_property
    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of the streams as Arrow has them, with computed event times."""
        own = {name: arrow_columns(schema) for name, schema in self.own.items()}
        return {name: each.with_arrow(own[name]) for name, each in self.times.items()}

    @property
    def typing(self) -> SparkTyping:
        """The types of expressions over the streams."""
        return SparkTyping(self.spark, self.columns)

    @property
    def event_times(self) -> dict[str, EventTime]:
        """The event times of the streams."""
        return {name: each.time for name, each in self.times.items()}

    def describe_times(self, names: TimeNames) -> str:
        """The event times as a checkpoint knows them, with the zone if they depend on it."""
        is_computed = any(time.sql for time in self.times.values())
        if isinstance(names, str) and not is_computed:
            return names
        text = ", ".join(f"{source}={each}" for source, each in sorted(self.times.items()))
        return f"{text} in {self.zone}" if is_computed else text

    @property
    def zone(self) -> str:
        """The name of the session's time zone."""
        return time_zone(self.spark)

    def clock(self, *, is_wall: bool) -> Shown:
        """A clock like those that event times come from."""
        return wall_clock(self.spark) if is_wall else instant_clock

    def now_us(self) -> int:
        """The time by the driver's clock."""
        return time.time_ns() // 1000

    @property
    def cores(self) -> int:
        """How many cores Spark has for tasks, as far as it tells."""
        return self.spark.sparkContext.defaultParallelism

    def costs(self, *, several_keys: bool) -> IndexProbes:
        """What the operations of a join cost on this machine."""
        return measure_costs(several_keys=several_keys)

    def check(self, query: Query) -> None:
        """Refuse string keys that compare other than byte by byte: that is how we compare."""
        for column in (column for key in query.keys for column in key.columns):
            stream = query.streams[column.stream]
            if column.column in self.columns[stream.source].names:
                kind = self.columns[stream.source][column.column].dataType
                if isinstance(kind, StringType) and kind.collation != "UTF8_BINARY":
                    raise BraidError(
                        f"key column {stream.alias}.{column.column} has the collation "
                        f"{kind.collation}",
                        hint="compare it byte by byte: collate it as UTF8_BINARY before the "
                        "query",
                    )

    def check_start(self) -> None:
        """Raise an error if Spark is gone before a query has begun."""
        require_spark(self.spark)

    def check_name(self, name: str) -> None:
        """Refuse a name that is taken: Spark has room for one streaming query of a name."""
        if self.frames and any(each.name == name for each in self.spark.streams.active):
            raise BraidError(
                f"a streaming query called {name!r} runs in this session already",
                hint="stop it first, or give another name",
            )

    def folders(self, places: Collection[Path]) -> Iterator[tuple[str, FileStream]]:
        """The local folders that streams read: ours all, Spark's as far as they have places."""
        for name, reader in self.readers.items():
            yield name, reader.stream
        for name, frame in self.frames.items():
            for pattern in local_inputs(frame):
                for folder in named_by(pattern, places):
                    yield name, FileStream(folder)

    def as_known(self, found: Mapping[str, FileColumns]) -> dict[str, FileColumns] | None:
        """The columns of folders, by stream, if a checkpoint has found others."""
        own = {name: reader.columns for name, reader in self.readers.items()}
        known = {name: found.get(name, each) for name, each in own.items()}
        return None if known == own else known

    def supply(self, checkpoint: Checkpoint) -> SparkSupply:
        """The same, for a run on a checkpoint."""
        return SparkSupply(self, checkpoint)


def arrow_columns(schema: StructType) -> pa.Schema:
    """The columns that Spark and Arrow share; others cannot be used in a query."""
    fields = []
    for column in schema.fields:
        try:
            fields.append(pa.field(column.name, to_arrow_type(column.dataType, timezone="UTC")))
        except Exception:
            continue
    return pa.schema(fields)


def check_streams(streams: Mapping[str, object]) -> None:
    """Refuse DataFrames that cannot be streams here, and a mixture with folders."""
    for name, stream in streams.items():
        if isinstance(stream, DataFrame):
            require_spark(stream.sparkSession)
        if isinstance(stream, DataFrame) and not stream.isStreaming:
            raise BraidError(
                f"stream {name!r} is a DataFrame that does not stream",
                hint="a table that stays as it is: join it with one of the streams before the "
                "query, as in orders.join(table, 'id'); rows that still come: read them with "
                "spark.readStream, or give their folder as braid.files(path)",
            )
    kinds = {isinstance(stream, FileStream) for stream in streams.values()}
    if len(kinds) > 1:
        raise BraidError(
            "a query reads either streaming DataFrames or folders, not both",
            hint="read the folders with spark.readStream as well",
        )


def refuse_connect(name: str, stream: object) -> None:
    """Refuse a DataFrame of Spark Connect."""
    if type(stream).__module__.startswith("pyspark.sql.connect"):
        raise BraidError(
            f"stream {name!r} is a DataFrame of Spark Connect, which Braid cannot run on",
            hint="use a classic session, such as SparkSession.builder.master(…) has it: "
            "Braid's workers are tasks of its driver",
        )


def spark_of(streams: Mapping[str, Stream]) -> SparkSession:
    """The session to work in; folders are read in one of our own, with its own settings."""
    for stream in streams.values():
        if isinstance(stream, DataFrame):
            return stream.sparkSession
    if not streams:
        raise BraidError("no streams were given", hint='name them: braid.query("…", a=…, b=…)')
    return session().newSession()
