"""What users call: `braid.query(...)`, and `start(...)` on what it returns."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructType

from braid import cql
from braid.adapt.shares import parse_shares, shared_assignment
from braid.events import Journal, Recovered, Started, instant
from braid.join.outcome import commit_before_first
from braid.join.plan import JoinPlan, make_plan
from braid.model.duration import parse_duration
from braid.model.errors import BraidError, CheckpointError
from braid.model.expression import Column
from braid.model.shown import Shown
from braid.plan.explain import explain
from braid.plan.shape import shape_text, show_plans
from braid.runtime.adaptation import Adaptation, MemorySettings, memory_settings
from braid.runtime.coordinator import Coordinator
from braid.runtime.files import FileStream, FolderReader, Shelf
from braid.runtime.idleness import Idleness
from braid.runtime.migration import Migration, parse_wish
from braid.runtime.observation import Observation
from braid.runtime.pacing import Pacing
from braid.runtime.pinning import drop_anchor
from braid.runtime.relocation import Relocation
from braid.runtime.replanning import OFF, Replanning, replanning_of
from braid.runtime.run import FolderFeed, Run, SparkFeed
from braid.runtime.session import described, session
from braid.runtime.shipping import Shipment
from braid.runtime.sinks import MemorySink, ParquetSink, Sink
from braid.runtime.split import Splits
from braid.runtime.task import reclaim_memory, release_memory
from braid.runtime.typing import SparkTyping
from braid.runtime.union import StreamUnion
from braid.state.checkpoint import Checkpoint, Identity
from braid.state.commit import BEFORE_FIRST, Commit
from braid.state.moving import settled
from braid.state.names import NameList
from braid.state.resharing import reshared

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from braid.adapt.strategy import Strategy
    from braid.cql.fluent import Draft
    from braid.model.query import Query
    from braid.runtime.union import Gathered
    from braid.state.move import Move
    from braid.state.runs import Run as StateRun

Stream = DataFrame | FileStream
MOST_GROUPS = 65_536


def query(
    text: str | Draft,
    *,
    event_time: str,
    lateness: str = "0 seconds",
    idle_timeout: str | None = None,
    **streams: Stream,
) -> ContinuousQuery:
    """Bind a query to its streams: streaming DataFrames, or folders (`braid.files`).

    The query is a text, or a draft that began with `braid.stream`.
    Rows that come more than `lateness` behind the newest of all streams are dropped and
    counted. A stream without rows for `idle_timeout` no longer holds the others' state.
    """
    text = text if isinstance(text, str) else text.text
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
    typing = SparkTyping(spark, columns)
    schemas = {name: arrow_columns(schema) for name, schema in columns.items()}
    bound = cql.bind(text, schemas, event_time=event_time, typing=typing)
    _check_collations(bound, columns)
    return ContinuousQuery(
        bound,
        column_types(bound, schemas, typing),
        event_time,
        parse_duration(lateness),
        None if idle_timeout is None else parse_duration(idle_timeout),
        spark,
        frames,
        readers,
    )


def column_types(
    bound: Query, schemas: Mapping[str, pa.Schema], typing: SparkTyping
) -> dict[Column, pa.DataType]:
    """The types of all streams' columns, derived ones too."""
    types = {}
    for number, ref in enumerate(bound.streams):
        for field in schemas[ref.source]:
            types[Column(number, field.name)] = field.type
        for derived in ref.derived:
            types[Column(number, derived.name)] = typing.derived(ref.source, derived.sql)
    return types


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


def arrow_columns(schema: StructType) -> pa.Schema:
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
    for column in (column for key in bound.keys for column in key.columns):
        stream = bound.streams[column.stream]
        if column.column in columns[stream.source].names:
            kind = columns[stream.source][column.column].dataType
            if isinstance(kind, StringType) and kind.collation != "UTF8_BINARY":
                raise BraidError(
                    f"key column {stream.alias}.{column.column} has the collation "
                    f"{kind.collation}",
                    hint="compare it byte by byte: collate it as UTF8_BINARY before the query",
                )


@dataclass(frozen=True, repr=False)
class ContinuousQuery(Shown):
    """A query bound to its streams, ready to start."""

    query: Query
    types: Mapping[Column, pa.DataType]
    event_time: str
    lateness_us: int
    idle_timeout_us: int | None
    spark: SparkSession
    frames: Mapping[str, DataFrame]
    readers: Mapping[str, FolderReader]

    def _facts(self) -> dict[str, object]:
        aliases = (stream.alias for stream in self.query.streams)
        return {"streams": ", ".join(aliases), "query": self.query.text}

    def plan(
        self, *, groups: int = 256, plan: str | None = None, order: str | None = None
    ) -> JoinPlan:
        """How the query would be executed: by our own plan, or by a given tree and orders."""
        _check_range("groups", groups, MOST_GROUPS)
        return make_plan(
            self.query,
            self.types,
            self.event_time,
            groups=groups,
            lateness_us=self.lateness_us,
            plans=[shape_text(plan, order)],
        )

    def explain(self, *, plan: str | None = None, order: str | None = None) -> str:
        """The plan in words: its tree, states, probes and shuffles, and what Spark computes."""
        return explain(self.query, self.plan(plan=plan, order=order).rounds)

    def start(
        self,
        *,
        checkpoint: str | os.PathLike[str],
        sink: Sink,
        name: str | None = None,
        workers: int | None = None,
        groups: int = 256,
        plan: str | None = None,
        order: str | None = None,
        late: str | os.PathLike[str] | None = None,
        events: str | os.PathLike[str] | None = None,
        available_now: bool = False,
        assign: str | None = None,
        skew_buffer: int | None = None,
        migrate_at: Sequence[str] = (),
        migration: str = "auto",
        migration_pause: str = "500 milliseconds",
        optimizer: str = OFF,
        replan_when: str = "data",
        memory: str | int | None = None,
        overflow: str = "probe",
        strategy: str | Strategy | None = None,
        spill_policy: str | None = None,
        spill_percent: float | None = None,
        cleanup: str = "end",
        trigger: str | None = None,
    ) -> Run:
        """Run the query in the background, from where the checkpoint stands.

        Folders are read until their files are used up; DataFrames until `stop`, or, with
        `available_now`, until what their sources have now is used up. In Spark's pages, jobs
        and the streaming query bear the run's `name`: by default "braid", the streams, and a
        number of the checkpoint's own.

        `memory` ("64KB", "2GB") is what each worker's state may take. A `strategy` keeps it to
        that, by moving groups to workers with room and by pushing others to disk: by default
        `auto`, or else one with its parameters, such as "lazy-disk theta_r=0.5". With the
        overflow `probe` groups are joined on disk; with `defer`, what they owe is made by a
        clean-up. Workers begin with equal shares of the groups, or with those of `assign`.

        With a `skew_buffer`, no worker takes more rows of a batch than it can join in the time
        of the others: up to so many rows wait for later batches, and beyond that the sources.

        The plan changes while the query runs: `migrate_at` tells when and to what, such as
        "12:((a b) c)", or "12@0,3:((a b) c)" for workers 0 and 3 alone, and `Run.migrate` at
        any time. The `migration` is by `moving-state`, in which a batch takes about
        `migration_pause` longer at most, by `parallel-track`, or `auto`. A checkpoint goes on
        with the plan that it has come to. An `optimizer` (`mjoin-init`, `bjtree-init`,
        `exhaustive`) looks for better plans by itself, and `replan_when` tells how often:
        `data`, when rates or selectivities change, `memory`, when state nears its budget or
        rows that wait increase, or `refined`, when inner joins keep more and more too; with
        parameters, such as "data threshold=0.3".
        """
        if trigger is not None:
            raise BraidError(
                "the option trigger= of start() is called replan_when= now",
                hint=f"write replan_when={trigger!r}",
            )
        settings = memory_settings(
            memory, overflow, strategy, spill_policy, spill_percent, cleanup
        )
        workers = self._worker_count(workers)
        if skew_buffer is not None and skew_buffer < 0:
            raise BraidError(f"a buffer cannot hold {skew_buffer:,} rows")
        laid = self.plan(groups=groups, plan=plan, order=order)
        wishes = [parse_wish(text, migration) for text in migrate_at]
        course = Migration(laid, workers, parse_duration(migration_pause) / 1000, migration)
        union, observation = self.union(laid), Observation(laid.query)
        advised = replanning_of(
            course, union, observation, optimizer, replan_when, settings.memory_bytes
        )
        for wish in wishes:
            course.ask(wish)
        shares = None if assign is None else parse_shares(assign, workers)
        folder = Path(checkpoint).absolute()
        opened = Checkpoint.open(folder, _identity(laid), _first_commit(laid, workers, shares))
        try:
            _check_plan(folder, opened.last_commit(), laid, given=(plan, order) != (None, None))
            setup = _Setup(
                migration=course,
                union=union,
                observation=observation,
                replanning=advised,
                memory=settings,
                pacing=Pacing(skew_buffer),
                sink=sink,
                late=None if late is None else ParquetSink(late),
                events=None if events is None else Path(events),
                available_now=available_now,
                name=self._run_name(name, opened.id),
            )
            return self._start(setup, opened)
        except BaseException:
            opened.close()
            raise

    def _run_name(self, name: str | None, checkpoint_id: str) -> str:
        """The name of a run; Spark has room for one streaming query of a name."""
        if name is None:
            aliases = ", ".join(stream.alias for stream in self.query.streams)
            name = f"braid {aliases} ({checkpoint_id[:8]})"
        if self.frames and any(each.name == name for each in self.spark.streams.active):
            raise BraidError(
                f"a streaming query called {name!r} runs in this session already",
                hint="stop it first, or give another name",
            )
        return name

    def _worker_count(self, workers: int | None) -> int:
        if workers is None:
            return self.spark.sparkContext.defaultParallelism
        _check_range("workers", workers, MOST_GROUPS)
        return workers

    def _start(self, setup: _Setup, checkpoint: Checkpoint) -> Run:
        migration, workers = setup.migration, setup.migration.workers
        last = checkpoint.last_commit()
        resumed, plan = migration.resume(settled(last)), migration.plan
        commit = reshared(resumed, [state.space for state in plan.rounds.states], workers)
        names = NameList.open(checkpoint.names, commit.position) if self.readers else None
        _check_apart(setup.sink, setup.late)
        for place in (setup.sink, setup.late):
            if place is not None:
                place.open(checkpoint.folder, checkpoint.id, last.batch)
        if isinstance(setup.sink, MemorySink):
            setup.sink.schema = plan.result_schema
        journal = Journal(setup.events)
        reclaim_memory(checkpoint.folder)
        incarnation = f"{checkpoint.id}-{uuid.uuid4().hex[:8]}"
        with described(self.spark, f"{setup.name}: place the workers"):
            anchor = drop_anchor(self.spark, workers)
        adaptation = Adaptation(plan, setup.memory, commit)

        def send(commit: Commit, move: Move) -> dict[int, StateRun]:
            place = checkpoint.folder, incarnation, setup.memory.memory_bytes
            shipment = Shipment(commit, move, *place, anchor.slot_keys[move.receiver])
            ways = f"from worker {move.sender} to worker {move.receiver}"
            with described(self.spark, f"{setup.name}: move groups {ways}"):
                return shipment.send(anchor)

        relocation = Relocation(plan, send)
        coordinator = Coordinator(
            checkpoint=checkpoint,
            commit=commit,
            anchor=anchor,
            incarnation=incarnation,
            sink=setup.sink,
            late=setup.late,
            idleness=Idleness(len(plan.streams), self.idle_timeout_us),
            adaptation=adaptation,
            relocation=relocation,
            pacing=setup.pacing,
            migration=migration,
            observation=setup.observation,
            replanning=setup.replanning,
            splits=Splits(setup.union),
            journal=journal,
            name=setup.name,
        )

        def close() -> None:
            relocation.close()
            if setup.replanning is not None:
                setup.replanning.sampling.close()
            anchor.release()
            release_memory(incarnation)
            checkpoint.close()
            journal.close()

        run = Run(journal, close, adaptation.ask_for_cleanup, migration.change_to)
        _announce(coordinator, last)
        coordinator.publish_last(self.spark)
        checkpoint.sweep(commit)  # a batch that failed for a full disk must not fill it further
        return run.follow(self._feed(coordinator, names, setup.available_now))

    def _feed(
        self, coordinator: Coordinator, names: NameList | None, available_now: bool
    ) -> FolderFeed | SparkFeed:
        union = coordinator.splits.union
        if names is not None:
            folders = {name: reader.stream for name, reader in self.readers.items()}
            shelf = Shelf.browse(folders, names.read)
            read = partial(self._read_files, self._needed_columns(), union)
            return FolderFeed(shelf, names, read, coordinator, self.spark)
        offsets = coordinator.checkpoint.folder / "spark"
        writer = union.together(self.frames).writeStream.queryName(coordinator.name)
        writer = writer.option("checkpointLocation", str(offsets))
        writer = writer.trigger(availableNow=True) if available_now else writer
        return SparkFeed(writer, coordinator, self.spark, is_bounded=available_now)

    def union(self, plan: JoinPlan) -> StreamUnion:
        """How rows of the query's streams are gathered; it is the same for all plans."""
        columns = {name: reader.schema for name, reader in self.readers.items()}
        columns |= {name: frame.schema for name, frame in self.frames.items()}
        return StreamUnion.of(plan, columns)

    def _read_files(
        self,
        needed: Mapping[str, list[str]],
        union: StreamUnion,
        taken: Mapping[str, list[str]],
    ) -> Gathered:
        """The rows of some files."""
        return union.apart({n: r.read(taken[n], needed[n]) for n, r in self.readers.items()})

    def _needed_columns(self) -> dict[str, list[str]]:
        """The sources' own columns that the query uses, under any of their aliases."""
        needed = {source: {self.event_time} for source in self.readers}
        for number, stream in enumerate(self.query.streams):
            needed[stream.source] |= cql.columns_of_stream(self.query, number)
        return {
            source: [name for name in reader.schema.names if name in needed[source]]
            for source, reader in self.readers.items()
        }


@dataclass(frozen=True, slots=True)
class _Setup:
    """What a run is made of, besides its query and its checkpoint."""

    migration: Migration
    union: StreamUnion
    observation: Observation
    replanning: Replanning | None
    memory: MemorySettings
    pacing: Pacing
    sink: Sink
    late: ParquetSink | None
    events: Path | None
    available_now: bool
    name: str


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
    columns = dict.fromkeys(
        column
        for a_round in plan.rounds.rounds
        for port in a_round.ports
        if port.stream is not None
        for column in port.relation.columns
    )
    aliases = [stream.alias for stream in plan.query.streams]
    # Sorted: the columns of another plan are no other columns.
    shape = sorted(f"{aliases[c.stream]}.{c.column} {plan.wire.types[c]}" for c in columns)
    shape.append(f"event time {plan.wire.event_time}")
    return Identity(plan.query.text, ", ".join(shape), plan.groups)


def _check_plan(folder: Path, commit: Commit, plan: JoinPlan, *, given: bool) -> None:
    """A plan that someone asks for must be the one that a checkpoint has come to."""
    come_to = commit.plans if commit.change is None else commit.plans[-1:]
    if given and come_to != plan.texts:
        raise CheckpointError(
            f"the checkpoint {folder} has another plan:\n"
            f"  it is {show_plans(come_to)}\n  asked for is {plan.texts[0]}",
            hint="leave the plan away to go on with it, and change it while it runs",
        )


def _first_commit(plan: JoinPlan, workers: int, shares: tuple[float, ...] | None) -> Commit:
    commit = commit_before_first(plan, workers)
    if shares is None:
        return commit
    assignments = (shared_assignment(plan.groups, shares),) * len(plan.rounds.spaces)
    return replace(commit, assignments=assignments)


def _announce(coordinator: Coordinator, commit: Commit) -> None:
    """Report the start; `commit` is the last one, as it was written."""
    journal = coordinator.journal
    journal.add(
        Started(
            query=coordinator.plan.query.text,
            plan=show_plans(coordinator.plan.texts),
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
