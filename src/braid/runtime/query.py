"""What users call: `braid.query(...)`, and `start(...)` on what it returns."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructType

from braid import cql
from braid.events import Journal, Recovered, Started, instant
from braid.join.plan import JoinPlan
from braid.join.wire import lay_out
from braid.model.duration import parse_duration
from braid.model.errors import BraidError
from braid.runtime.coordinator import Coordinator
from braid.runtime.files import FileStream, FolderReader, Shelf
from braid.runtime.idleness import Idleness
from braid.runtime.pinning import drop_anchor
from braid.runtime.run import FolderFeed, Run, SparkFeed
from braid.runtime.session import session
from braid.runtime.sinks import ParquetSink, Sink
from braid.runtime.split import tagged
from braid.runtime.task import reclaim_memory, release_memory
from braid.state.checkpoint import Checkpoint, Identity
from braid.state.commit import BEFORE_FIRST, Commit, first_commit, reshared
from braid.state.names import NameList

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from braid.model.query import Query

Stream = DataFrame | FileStream
MOST_GROUPS = 65_536


def query(
    text: str,
    *,
    event_time: str,
    lateness: str = "0 seconds",
    idle_timeout: str | None = None,
    **streams: Stream,
) -> ContinuousQuery:
    """Bind a query to its streams: streaming DataFrames, or folders (`braid.files`).

    Rows that come more than `lateness` behind the newest of all streams are dropped and
    counted. A stream without rows for `idle_timeout` no longer holds the others' state.
    """
    _check_streams(streams)
    used = {name: stream for name, stream in streams.items() if name in _used(text, streams)}
    spark = _spark_of(used)
    readers = {
        name: FolderReader(stream, spark)
        for name, stream in used.items()
        if isinstance(stream, FileStream)
    }
    frames = {name: stream for name, stream in used.items() if isinstance(stream, DataFrame)}
    columns = {name: reader.schema for name, reader in readers.items()}
    columns |= {name: frame.schema for name, frame in frames.items()}
    schemas = {name: _arrow_schema(schema) for name, schema in columns.items()}
    bound = cql.bind(text, schemas, event_time=event_time)
    _check_collations(bound, columns)
    plan = JoinPlan(bound, lay_out(bound, schemas, event_time), 1, parse_duration(lateness))
    timeout_us = None if idle_timeout is None else parse_duration(idle_timeout)
    return ContinuousQuery(plan, timeout_us, spark, frames, readers)


def _check_streams(streams: Mapping[str, object]) -> None:
    for name, stream in streams.items():
        if not isinstance(stream, DataFrame | FileStream):
            raise BraidError(
                f"stream {name!r} is a {type(stream).__name__}",
                hint="give a streaming DataFrame, or a folder as braid.files(path)",
            )
        if isinstance(stream, DataFrame) and not stream.isStreaming:
            raise BraidError(
                f"stream {name!r} is a DataFrame that does not stream",
                hint="read it with spark.readStream, or give its folder as braid.files(path)",
            )
    kinds = {isinstance(stream, FileStream) for stream in streams.values()}
    if len(kinds) > 1:
        raise BraidError(
            "a query reads either streaming DataFrames or folders, not both",
            hint="read the folders with spark.readStream as well",
        )


def _used(text: str, streams: Mapping[str, Stream]) -> set[str]:
    """The given streams that a query names; the others are not even looked at."""
    named = {name.lower() for name in cql.sources(text)}
    used = {name for name in streams if name.lower() in named}
    return used or set(streams)


def _spark_of(streams: Mapping[str, Stream]) -> SparkSession:
    """The session to work in; folders are read in one of our own, with its own settings."""
    for stream in streams.values():
        if isinstance(stream, DataFrame):
            return stream.sparkSession
    if not streams:
        raise BraidError("no streams were given", hint='name them: braid.query("…", a=…, b=…)')
    return session().newSession()


def _arrow_schema(schema: StructType) -> pa.Schema:
    """The columns that Spark and Arrow share; others cannot be used in a query."""
    fields = []
    for column in schema.fields:
        try:
            fields.append(pa.field(column.name, to_arrow_type(column.dataType, timezone="UTC")))
        except Exception:
            continue
    return pa.schema(fields)


def _check_collations(bound: Query, columns: Mapping[str, StructType]) -> None:
    """Refuse string keys that compare other than byte by byte, for that is how we compare."""
    for stream in bound.streams:
        for name in stream.key:
            kind = columns[stream.source][name].dataType
            if isinstance(kind, StringType) and kind.collation != "UTF8_BINARY":
                raise BraidError(
                    f"key column {stream.alias}.{name} has the collation {kind.collation}",
                    hint="compare it byte by byte: collate it as UTF8_BINARY before the query",
                )


@dataclass(frozen=True)
class ContinuousQuery:
    """A query bound to its streams, ready to start."""

    plan: JoinPlan
    idle_timeout_us: int | None
    spark: SparkSession
    frames: Mapping[str, DataFrame]
    readers: Mapping[str, FolderReader]

    def start(
        self,
        *,
        checkpoint: str | os.PathLike[str],
        sink: Sink,
        workers: int | None = None,
        groups: int = 256,
        late: str | os.PathLike[str] | None = None,
        events: str | os.PathLike[str] | None = None,
        available_now: bool = False,
    ) -> Run:
        """Run the query in the background, from where the checkpoint stands.

        Folders are read until their files are used up; DataFrames until `stop`, or, with
        `available_now`, until what their sources have now is used up.
        """
        workers = self._worker_count(workers)
        _check_range("groups", groups, MOST_GROUPS)
        plan = replace(self.plan, groups=groups)
        folder = Path(checkpoint).absolute()
        first = first_commit(len(plan.streams), groups, workers)
        opened = Checkpoint.open(folder, _identity(plan), first)
        try:
            return self._start(plan, opened, sink, workers, late, events, available_now)
        except BaseException:
            opened.close()
            raise

    def _worker_count(self, workers: int | None) -> int:
        if workers is None:
            return self.spark.sparkContext.defaultParallelism
        _check_range("workers", workers, MOST_GROUPS)
        return workers

    def _start(
        self,
        plan: JoinPlan,
        checkpoint: Checkpoint,
        sink: Sink,
        workers: int,
        late: str | os.PathLike[str] | None,
        events: str | os.PathLike[str] | None,
        available_now: bool,
    ) -> Run:
        last = checkpoint.last_commit()
        commit = reshared(last, workers)
        names = NameList.open(checkpoint.names, commit.position) if self.readers else None
        late_sink = None if late is None else ParquetSink(late)
        _check_apart(sink, late_sink)
        for place in (sink, late_sink):
            if place is not None:
                place.open(checkpoint.folder, checkpoint.id)
        journal = Journal(None if events is None else Path(events))
        reclaim_memory(checkpoint.folder)
        incarnation = f"{checkpoint.id}-{uuid.uuid4().hex[:8]}"
        anchor = drop_anchor(self.spark, workers)
        coordinator = Coordinator(
            plan=plan,
            checkpoint=checkpoint,
            commit=commit,
            anchor=anchor,
            incarnation=incarnation,
            sink=sink,
            late=late_sink,
            idleness=Idleness(len(plan.streams), self.idle_timeout_us),
            journal=journal,
        )

        def close() -> None:
            anchor.release()
            release_memory(incarnation)
            checkpoint.close()
            journal.close()

        run = Run(journal, close)
        _announce(coordinator, last)
        coordinator.publish_last(self.spark)
        checkpoint.sweep(commit)  # a batch that failed for a full disk must not fill it further
        return run.follow(self._feed(coordinator, names, available_now))

    def _feed(
        self, coordinator: Coordinator, names: NameList | None, available_now: bool
    ) -> FolderFeed | SparkFeed:
        if names is not None:
            folders = {name: reader.stream for name, reader in self.readers.items()}
            shelf = Shelf.browse(folders, names.read)
            return FolderFeed(shelf, names, self._read_files, coordinator)
        offsets = coordinator.checkpoint.folder / "spark"
        writer = tagged(self.plan, self.frames).writeStream
        writer = writer.option("checkpointLocation", str(offsets))
        return SparkFeed(
            writer.trigger(availableNow=True) if available_now else writer, coordinator
        )

    def _read_files(self, taken: Mapping[str, list[str]]) -> DataFrame:
        needed = {name: self._needed_columns(name) for name in self.readers}
        frames = {n: r.read(taken[n], needed[n]) for n, r in self.readers.items()}
        return tagged(self.plan, frames)

    def _needed_columns(self, source: str) -> list[str]:
        query = self.plan.query
        needed = [self.plan.wire.event_time]
        for number, stream in enumerate(query.streams):
            if stream.source == source:
                needed += [*stream.key, *query.columns(number)]
        return list(dict.fromkeys(needed))


def _check_apart(sink: Sink, late: ParquetSink | None) -> None:
    if late and isinstance(sink, ParquetSink) and late.folder == sink.folder:
        raise BraidError(
            f"results and late rows cannot share the folder {late.folder}",
            hint="give late rows a folder of their own",
        )


def _check_range(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise BraidError(f"the number of {name} must be from 1 to {most:,}, not {value:,}")


def _identity(plan: JoinPlan) -> Identity:
    wire = plan.wire
    columns = [
        f"{ref.alias}: {', '.join(f'{n} {t}' for n, t in zip(x.names, x.types, strict=True))}"
        for ref, x in zip(plan.query.streams, wire.streams, strict=True)
    ]
    keys = ", ".join(str(kind) for kind in wire.key_types)
    shape = f"{'; '.join(columns)}; key {keys}; event time {wire.event_time}"
    return Identity(plan.query.text, shape, plan.groups)


def _announce(coordinator: Coordinator, commit: Commit) -> None:
    """Report the start; `commit` is the last one, as it was written."""
    journal = coordinator.journal
    journal.add(
        Started(
            query=coordinator.plan.query.text,
            checkpoint=str(coordinator.checkpoint.folder),
            workers=coordinator.commit.workers,
            groups=coordinator.plan.groups,
            batch=commit.batch + 1,
        )
    )
    if commit.batch > BEFORE_FIRST:
        journal.add(
            Recovered(
                batch=commit.batch,
                state_rows=commit.state_rows,
                log_bytes=sum(section.length for section in commit.sections()),
                watermark=instant(commit.watermark_us),
            )
        )
