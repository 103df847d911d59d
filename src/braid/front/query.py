"""What users call: `braid.query(...)`, and `start(...)` on what it returns."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid import cql
from braid.control.adaptation import Adaptation, MemorySettings, memory_settings
from braid.control.control import Control
from braid.control.migration import AUTO, Migration, PlanChangeRequest, parse_request
from braid.control.observation import Observation
from braid.control.pacing import Pacing
from braid.control.relocation import Relocation
from braid.control.replanning import OFF, Replanning, names_trigger, replanning_of
from braid.control.shares import parse_shares, shared_assignment
from braid.cql.event_time import time_names
from braid.cql.zone import casts_to_instants
from braid.engine.clock import DriverClock, MaxAhead
from braid.engine.engine import Engine
from braid.engine.folder import NoFileYet
from braid.engine.idleness import Idleness
from braid.engine.loop import BatchLoop
from braid.engine.sink import LastBatch
from braid.engine.sources import Reading
from braid.events import Journal, Recovered, Started, instant, require_folder
from braid.front.places import check_apart, check_input, places_of
from braid.front.run import Run
from braid.front.sinks import CallbackSink, MemorySink, ParquetSink, check_sink
from braid.model.checks import require_known
from braid.model.duration import parse_duration
from braid.model.errors import BraidError, CheckpointError
from braid.model.expression import Column
from braid.model.paths import local_path
from braid.model.query import time_column
from braid.model.shown import Shown
from braid.plan.explain import explain
from braid.plan.join_plan import JoinPlan, make_plan
from braid.plan.shape import shape_text, show_plans
from braid.record.checkpoint import Checkpoint, Identity
from braid.record.commit import BEFORE_FIRST, Commit
from braid.record.enact import RecordDraft, Resize, enact
from braid.record.moving import settled
from braid.record.next_commit import commit_before_first
from braid.record.plan_change import resumed
from braid.spark.bad_rows import FAIL, keeps_bad_rows
from braid.spark.bad_rows import FOLDER as BAD_ROWS
from braid.spark.files import known_columns
from braid.spark.sources import (
    SparkSources,
    Stream,
    check_streams,
    refuse_connect,
    spark_of,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Sequence

    import pyarrow as pa

    from braid.control.strategy import Strategy
    from braid.cql.fluent import Draft
    from braid.cql.types import Typing
    from braid.engine.sink import Sink
    from braid.engine.sources import Sources
    from braid.model.query import Query, TimeNames
    from braid.optimize.cost_model import IndexProbes

_OPTIONS = ("event_time", "lateness", "idle_timeout", "streams")
MOST_GROUPS = 65_536


def query(
    text: str | Draft,
    streams: Mapping[str, Stream] | None = None,
    *,
    event_time: str | Mapping[str, str] | None = None,
    lateness: str = "0 seconds",
    idle_timeout: str | None = None,
    **more_streams: Stream,
) -> ContinuousQuery | UnboundQuery:
    """Bind a query to its streams: streaming DataFrames, or folders (`braid.files`).

    Streams are given by name, as keywords or in a mapping, which takes any name.
    The query is a text, or a draft that began with `braid.stream`. The `event_time` is a
    timestamp column of all streams, or an expression such as "timestamp_millis(ts)"; or a
    mapping from streams to these.
    Rows that come more than `lateness` behind the newest of all streams are dropped and
    counted. A stream without rows for `idle_timeout` no longer holds the others' state.
    """
    question = ask(
        text,
        _all_streams(streams, more_streams),
        event_time=event_time,
        lateness=lateness,
        idle_timeout=idle_timeout,
    )
    try:
        return question.bound()
    except NoFileYet:
        return UnboundQuery(question)


def ask(
    text: str | Draft,
    streams: Mapping[str, Stream],
    *,
    event_time: str | Mapping[str, str] | None,
    lateness: str,
    idle_timeout: str | None,
) -> Question:
    """A query that is yet to be bound; the streams that it names are there."""
    text = text if isinstance(text, str) else text.text
    event_time = _checked_times(event_time, streams)
    cql.check_sources(text, list(streams))
    named = used_streams(text, streams)
    used = {name: stream for name, stream in streams.items() if name in named}
    return Question(
        text,
        used,
        event_time,
        parse_duration(lateness),
        None if idle_timeout is None else parse_duration(idle_timeout),
        partial(SparkSources.open, used, spark_of(used), event_time),
    )


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of streams, whatever columns their files turn out to have."""

    text: str
    streams: Mapping[str, object]
    event_time: str | Mapping[str, str]
    lateness_us: int
    idle_timeout_us: int | None
    open: Callable[[Mapping[str, Any] | None], Sources]

    def bound(self, known: Mapping[str, Any] | None = None) -> ContinuousQuery:
        """The query over the columns of its streams; some folders' are known already."""
        return bind(self, self.open(known))


def bind(question: Question, sources: Sources) -> ContinuousQuery:
    """A query over streams whose columns are known."""
    times, typing = sources.event_times, sources.typing
    bound = cql.bind(question.text, sources.schemas, event_time=times, typing=typing)
    sources.check(bound)
    return ContinuousQuery(
        bound,
        column_types(bound, sources.schemas, typing),
        time_names(tuple(times[stream.source] for stream in bound.streams)),
        question.lateness_us,
        question.idle_timeout_us,
        sources,
        question,
    )


def column_types(
    bound: Query, schemas: Mapping[str, pa.Schema], typing: Typing
) -> dict[Column, pa.DataType]:
    """The types of all streams' columns, derived ones too."""
    types = {}
    for number, ref in enumerate(bound.streams):
        for own in schemas[ref.source]:
            types[Column(number, own.name)] = own.type
        for derived in ref.derived:
            types[Column(number, derived.name)] = typing.derived(ref.source, derived.sql)
    return types


def _all_streams(
    mapped: Mapping[str, Stream] | None, named: Mapping[str, Stream]
) -> dict[str, Stream]:
    """The streams of a mapping and of keywords, once they are known to be streams."""
    if mapped is not None and not isinstance(mapped, Mapping):
        raise BraidError(
            f"streams is a {type(mapped).__name__}, not a mapping of names to streams",
            hint='write streams={"a": …, "b": …}; one called streams is given in it too',
        )
    streams: dict[str, Stream] = {}
    for name, stream in (*(mapped or {}).items(), *named.items()):
        if not isinstance(name, str):
            raise BraidError(
                f"the name of a stream is {name!r}",
                hint='give the name that the query has for it, such as {"a": …}',
            )
        if name.lower() in map(str.lower, streams):
            raise BraidError(
                f"stream {name!r} is given twice",
                hint="give each stream once: upper and lower case make no difference, nor "
                "does it whether it is given in streams or as a keyword",
            )
        streams[name] = stream
    _check_streams(streams, mistyped=set(named))
    return streams


def _check_streams(streams: Mapping[str, object], mistyped: Collection[str]) -> None:
    """Refuse what is no stream; some names may be options that were mistyped."""
    for name, stream in streams.items():
        refuse_connect(name, stream)
        if not isinstance(stream, Stream):
            near = get_close_matches(name, _OPTIONS, 1) if name in mistyped else []
            what = f"stream {name!r} is a {type(stream).__name__}"
            hint = "give a streaming DataFrame, or a folder as braid.files(path)"
            if near:
                what, hint = f"unknown option {name!r}", f"did you mean {near[0]}?"
            elif name in mistyped and name in signature(ContinuousQuery.start).parameters:
                hint = f"{name} is an option of start(); or {hint}"
            raise BraidError(what, hint=hint)
    check_streams(streams)


def _checked_times(
    event_time: str | Mapping[str, str] | None, streams: Mapping[str, Stream]
) -> str | Mapping[str, str]:
    """The event time, once it is known to be of the streams that there are."""
    if isinstance(event_time, str):
        return event_time
    if not isinstance(event_time, Mapping):
        kind = type(event_time).__name__
        raise BraidError(
            "no event_time is given" if event_time is None else f"event_time is a {kind}",
            hint='name the column that says when, as in event_time="ts"',
        )
    for name, text in event_time.items():
        require_known("stream in event_time:", name, streams)
        if not isinstance(text, str):
            raise BraidError(
                f"the event_time of stream {name!r} is a {type(text).__name__}",
                hint="name a column, or write an expression, as a text",
            )
    return event_time


def used_streams(text: str, streams: Mapping[str, object]) -> set[str]:
    """The given streams that a query names; the others are not even looked at."""
    named = {name.lower() for name in cql.sources(text)}
    return {name for name in streams if name.lower() in named}


@dataclass(frozen=True, repr=False)
class ContinuousQuery(Shown):
    """A query bound to its streams, ready to start."""

    query: Query
    types: Mapping[Column, pa.DataType]
    event_time: TimeNames
    lateness_us: int
    idle_timeout_us: int | None
    sources: Sources
    question: Question | None = None

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
        max_ahead: str | None = None,
        bad_rows: str = FAIL,
        events: str | os.PathLike[str] | None = None,
        available_now: bool = False,
        follow: bool = False,
        interval: str | None = None,
        assign: str | None = None,
        skew_buffer: int | None = None,
        migrate_at: Sequence[str] = (),
        migration: str = "auto",
        migration_pause: str = "500 milliseconds",
        optimizer: str = OFF,
        replan_when: str = "data",
        cpu: float | None = None,
        memory: str | int | None = None,
        overflow: str = "probe",
        strategy: str | Strategy | None = None,
        spill_policy: str | None = None,
        spill_percent: float | None = None,
        cleanup: str = "end",
        trigger: object = None,
    ) -> Run:
        """Run the query in the background, from where the checkpoint stands.

        Folders are read until their files are used up, or, with `follow`, until `stop`: new
        files are read as they come, once they are complete. DataFrames are read until `stop`,
        or, with `available_now`, until what their sources have now is used up. With an
        `interval` ("10 seconds") a batch begins at most so often. In Spark's pages, jobs and
        the streaming query bear the run's `name`: by default "braid", the streams, and a
        number of the checkpoint's own.

        `memory` ("64KB", "2GB") is what each worker's state may take. A `strategy` keeps it to
        that, by moving groups to workers with room and by pushing others to disk: by default
        `auto`, or else one with its parameters, such as "lazy-disk theta_r=0.5". With the
        overflow `probe` groups are joined on disk; with `defer`, what they owe is made by a
        clean-up. Workers begin with equal shares of the groups, or with those of `assign`.

        With `max_ahead` ("1 hour"), rows whose time lies further ahead of the driver's clock
        than that are refused: they are counted, and kept with those that are `late`. Event
        times without a time zone are compared with a clock in the session's time zone.

        A row that an expression of its stream fails for, or that does not fit its stream's
        columns, ends the run. With `bad_rows="keep"` such rows are counted, and kept with their
        reason in the checkpoint's folder `bad-rows`. Expressions over several streams are not
        tried: where one overflows, the run ends, and the error names the CAST that cures it.
        Nor are those that a DataFrame computes itself, or Python functions.

        With a `skew_buffer`, no worker takes more rows of a batch than it can join in the time
        of the others: up to so many rows wait for later batches, and beyond that the sources.

        The plan changes while the query runs: `migrate_at` tells when and to what, such as
        "12:((a b) c)", or "12@0,3:((a b) c)" for workers 0 and 3 alone, and `Run.migrate` at
        any time. The `migration` is by `moving-state`, in which a batch takes about
        `migration_pause` longer at most, by `parallel-track`, or `auto`. A checkpoint goes on
        with the plan that it has come to. An `optimizer` (`mjoin-init`, `bjtree-init`,
        `exhaustive`) looks for better plans by itself, and `replan_when` tells how often:
        `data`, when rates or selectivities change, `memory`, when state nears its budget or the
        backlog grows, or `refined`, when inner joins keep more and more too; with parameters,
        such as "data threshold=0.3". A plan should keep all workers within `cpu` cores, by
        default as many as they have; with `math.inf` it should take as little CPU as can be
        found.
        """
        if trigger is not None:
            raise _other_name_of(trigger)
        if name is not None:
            self._check_name(name)
        settings = memory_settings(
            memory, overflow, strategy, spill_policy, spill_percent, cleanup
        )
        check_sink(sink)
        self.sources.check_start()
        folder = local_path(checkpoint).absolute()
        bound = self._as_known_to(folder)
        workers = bound._worker_count(workers)
        if follow and available_now:
            raise BraidError(
                "`follow` reads on for ever, and `available_now` ends with the rows of now",
                hint="give one of the two",
            )
        if skew_buffer is not None and skew_buffer < 0:
            raise BraidError(f"a buffer cannot hold {skew_buffer:,} rows")
        laid = bound.plan(groups=groups, plan=plan, order=order)
        requests = [parse_request(text, migration) for text in migrate_at]
        several_keys = len(laid.query.keys) > 1
        costs = partial(bound.sources.costs, several_keys=several_keys)
        pause_ms = parse_duration(migration_pause) / 1000
        course = Migration(workers, pause_ms, migration)
        keeps_bad = keeps_bad_rows(bad_rows)
        observation = Observation(laid.query)
        advised = replanning_of(
            laid,
            course,
            costs,
            observation,
            optimizer,
            replan_when,
            settings.memory_bytes,
            min(workers, bound.sources.cores) if cpu is None else cpu,
        )
        asked = [course.checked(laid.query, each) for each in requests]
        is_priced = advised is None and any(each.way == AUTO for each in asked)
        course = course.asked(*asked)
        ahead = None if max_ahead is None else bound._max_ahead(max_ahead)
        interval_s = 0.0 if interval is None else parse_duration(interval) / 1e6
        shares = None if assign is None else parse_shares(assign, workers)
        kept_late = None if late is None else ParquetSink(late)
        journal_file = None if events is None else local_path(events)
        if journal_file is not None:
            require_folder(journal_file)
        _check_columns(laid, sink, kept_late)
        places = places_of(folder, sink, kept_late, journal_file)
        check_input(places, bound.sources.folders(places.values()))
        check_apart(places)
        first = _first_commit(laid, workers, shares)
        opened = Checkpoint.open(folder, bound._identity(laid), first)
        try:
            _check_plan(folder, opened.last_commit(), laid, given=(plan, order) != (None, None))
            setup = _Setup(
                plan=laid,
                migration=course,
                observation=observation,
                replanning=advised,
                costs=costs,
                measured=costs() if is_priced else None,
                memory=settings,
                pacing=Pacing(skew_buffer),
                sink=sink,
                late=kept_late,
                max_ahead=ahead,
                keeps_bad=keeps_bad,
                events=journal_file,
                reading=Reading(None, available_now, follow, interval_s),
                name=bound._own_name(opened.id) if name is None else name,
            )
            return bound._start(setup, opened)
        except BaseException:
            opened.close()
            raise

    def _as_known_to(self, checkpoint: Path) -> ContinuousQuery:
        """This query over the columns that a checkpoint knows of folders."""
        known = self.sources.as_known(known_columns(checkpoint))
        return self if self.question is None or known is None else self.question.bound(known)

    def _identity(self, plan: JoinPlan) -> Identity:
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
        shape.append(f"event time {self.sources.describe_times(self.event_time)}")
        zone = self.sources.zone if casts_to_instants(plan.query) else ""
        return Identity(plan.query.text, ", ".join(shape), plan.groups, zone)

    def _max_ahead(self, text: str) -> MaxAhead:
        """How far rows may be ahead of a clock like those that their times come from."""
        is_wall = self.types[time_column(self.event_time, 0)].tz is None  # all are, or none
        return MaxAhead(parse_duration(text), self.sources.clock(is_wall=is_wall))

    def _own_name(self, checkpoint_id: str) -> str:
        """The name of a run that was given none."""
        aliases = ", ".join(stream.alias for stream in self.query.streams)
        name = f"braid {aliases} ({checkpoint_id[:8]})"
        self._check_name(name)
        return name

    def _check_name(self, name: str) -> None:
        """Refuse a name that cannot be, or that is taken."""
        if not isinstance(name, str) or not name.strip():
            raise BraidError(
                f"the name of a run is {name!r}", hint="give it a text, or leave it out"
            )
        self.sources.check_name(name)

    def _worker_count(self, workers: int | None) -> int:
        if workers is None:
            return self.sources.cores
        _check_range("workers", workers, MOST_GROUPS)
        return workers

    def _start(self, setup: _Setup, checkpoint: Checkpoint) -> Run:
        migration, workers = setup.migration, setup.migration.workers
        last = checkpoint.last_commit()
        supply = self.sources.supply(checkpoint)
        supply.check_offsets()
        resting = settled(last)
        migration = migration.resumed(resting)
        draft = enact(RecordDraft(*resumed(resting, setup.plan, workers)), Resize(workers))
        commit, plan = draft.commit, draft.plan
        names = supply.read_files(commit.position)
        is_published = checkpoint.is_published(last.batch)
        if setup.late is None and not is_published:
            _refuse_to_leave_late_rows(last)
        supply.note_columns()
        bad = None
        if setup.keeps_bad or (last.bad_parts and not is_published):
            bad = ParquetSink(checkpoint.folder / BAD_ROWS)
        gaps = [
            sink.open(
                checkpoint.folder,
                checkpoint.id,
                LastBatch(last.batch, staged, parts, is_published),
            )
            for sink, staged, parts in (
                (setup.sink, last.staged, last.parts),
                (setup.late, last.late_staged, last.late_parts),
                (bad, last.bad_staged, last.bad_parts),
            )
            if sink is not None
        ]
        if isinstance(setup.sink, MemorySink):
            setup.sink.schema = plan.result_schema
        if isinstance(setup.sink, CallbackSink):
            setup.sink.read = supply.results
        journal = Journal(setup.events, uuid.uuid4().hex[:12])
        cluster = supply.cluster(
            plan,
            workers=workers,
            name=setup.name,
            memory_bytes=setup.memory.memory_bytes,
            keeps_bad=setup.keeps_bad,
        )
        advised = setup.replanning
        engine = Engine(
            checkpoint=checkpoint,
            committed=last,
            draft=draft,
            cluster=cluster,
            sink=setup.sink,
            late=setup.late,
            bad=bad,
            idleness=Idleness(len(plan.streams), self.idle_timeout_us),
            control=Control(
                setup.observation,
                Relocation(),
                setup.pacing,
                Adaptation.of(plan, setup.memory, commit),
                migration,
                advised,
                setup.measured if advised is None else advised.costs,
            ),
            journal=journal,
            costs=setup.costs,
            driver_clock=DriverClock(self.sources.now_us, setup.max_ahead),
        )

        def close() -> None:
            checkpoint.withdraw_orders()  # or a late task would keep its state in memory
            cluster.close()
            checkpoint.close()
            journal.close()

        def change_plan(plan: str, workers: tuple[int, ...]) -> None:
            engine.ask_for_plan(PlanChangeRequest(plan, migration.way, workers=workers))

        run = Run(journal, close, engine.ask_for_cleanup, change_plan)
        _announce(engine, last)
        for gap in filter(None, gaps):
            journal.add(gap)
        engine.publish_last()
        checkpoint.sweep(commit)  # a batch that failed for a full disk must not fill it further
        reading = replace(setup.reading, names=names)
        return run.follow(supply.feed(BatchLoop(engine), cluster, reading))


@dataclass(frozen=True, repr=False)
class UnboundQuery(Shown):
    """A query over folders that have no complete file yet to tell their columns.

    It starts on a checkpoint that knows them.
    """

    question: Question

    def _facts(self) -> dict[str, object]:
        return {"streams": ", ".join(self.question.streams), "query": self.question.text}

    def plan(self, **options: Any) -> JoinPlan:
        """The same as that of a `ContinuousQuery`, once there are files."""
        return self.question.bound().plan(**options)

    def explain(self, **options: Any) -> str:
        """The same as that of a `ContinuousQuery`, once there are files."""
        return self.question.bound().explain(**options)

    def start(self, *, checkpoint: str | os.PathLike[str], **options: Any) -> Run:
        """The same as that of a `ContinuousQuery`, over columns that the checkpoint knows."""
        known = known_columns(local_path(checkpoint).absolute())
        return self.question.bound(known).start(checkpoint=checkpoint, **options)


@dataclass(frozen=True, slots=True)
class _Setup:
    """What a run is made of, besides its query and its checkpoint."""

    plan: JoinPlan
    migration: Migration
    observation: Observation
    replanning: Replanning | None
    costs: Callable[[], IndexProbes]
    measured: IndexProbes | None
    memory: MemorySettings
    pacing: Pacing
    sink: Sink
    late: ParquetSink | None
    max_ahead: MaxAhead | None
    keeps_bad: bool
    events: Path | None
    reading: Reading
    name: str


def _other_name_of(trigger: object) -> BraidError:
    """What is meant by `trigger`: the optimizer's, by its old name, or one as Spark has it."""
    if names_trigger(trigger):
        return BraidError(
            "the option trigger= of start() is called replan_when= now",
            hint=f"write replan_when={trigger!r}",
        )
    return BraidError(
        "start() has no option trigger=",
        hint="how often batches come: interval='10 seconds'; to end with what sources have "
        "now: available_now=True; when to look for a better plan: replan_when='data'",
    )


def _refuse_to_leave_late_rows(last: Commit) -> None:
    """Refuse to go on without the folder for late rows, if some are yet to be shown there."""
    if last.late_parts:
        folder = Path(last.late_staged).parent.parent
        raise BraidError(
            f"batch {last.batch} was committed with late rows that are yet to be shown in "
            f"{folder}",
            hint=f"start with --late {folder} once more, or with its new place if it has moved",
        )


def _check_columns(plan: JoinPlan, sink: Sink, late: ParquetSink | None) -> None:
    """Refuse columns that the names of folders would hide from readers of the output."""
    if isinstance(sink, ParquetSink):
        sink.check_columns(plan.result_schema.names)
    if late is not None:
        layouts = plan.wire.layouts.values()
        kept = (column for layout in layouts for column in layout.columns + layout.recovered)
        names = {column.column for column in kept if column.stream in plan.streams}
        names |= {time_column(plan.wire.event_time, s).column for s in plan.streams}
        late.check_columns(sorted(names), "stream")


def _check_range(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise BraidError(f"the number of {name} must be from 1 to {most:,}, not {value:,}")


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


def _announce(engine: Engine, commit: Commit) -> None:
    """Report the start; `commit` is the last one, as it was written."""
    journal = engine.journal
    journal.add(
        Started(
            query=engine.plan.query.text,
            plan=show_plans(engine.plan.texts),
            checkpoint=str(engine.checkpoint.folder),
            workers=engine.commit.workers,
            groups=engine.plan.groups,
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
