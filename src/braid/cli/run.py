"""`braid run`: a query over folders of files, from a shell."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from braid import cql
from braid.cli.spark_start import spark_config, start_spark
from braid.cli.stopping import see_through
from braid.control.replanning import TRIGGERS, names_trigger
from braid.engine.folder import FileStream, files
from braid.events import require_folder
from braid.front import sinks
from braid.front.query import ask
from braid.model.checks import require_known
from braid.model.errors import BraidError
from braid.model.paths import local_path
from braid.spark.bad_rows import FOLDER as BAD_ROWS
from braid.spark.files import known_columns

_LOOK_EVERY_S = 0.5

EventTimeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[STREAM=]COLUMN",
        help='The column that says when, or an expression such as "timestamp_millis(ts)"; of '
        "one stream with o=ordered_at, repeatable.",
        show_default="ts",
    ),
]


def run(
    file: Annotated[
        Path | None, typer.Argument(metavar="[QUERY.SQL]", help="A file with the query.")
    ] = None,
    *,
    stream: Annotated[
        list[str],
        typer.Option(metavar="NAME=DIR", help="A folder of files to read; once per stream."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            parser=local_path,
            metavar="DIR",
            help="Folder for the results, as __batch=N/*.parquet.",
        ),
    ],
    checkpoint: Annotated[
        Path,
        typer.Option(
            parser=local_path, metavar="DIR", help="Folder to continue from after any stop."
        ),
    ],
    q: Annotated[
        str | None, typer.Option("-q", "--query", help="The query itself, in place of a file.")
    ] = None,
    event_time: EventTimeOption = None,
    lateness: Annotated[
        str, typer.Option(help="How far rows may lag behind before they are dropped.")
    ] = "0 seconds",
    idle_timeout: Annotated[
        str | None,
        typer.Option(
            help="A stream silent for so long holds nothing up.", show_default="never"
        ),
    ] = None,
    late: Annotated[
        Path | None,
        typer.Option(
            parser=local_path,
            metavar="DIR",
            help="Folder to keep late rows in, and those too far ahead.",
        ),
    ] = None,
    max_ahead: Annotated[
        str | None,
        typer.Option(
            help="Refuse rows whose time lies so far ahead of the clock; times without a zone "
            "go by the session's.",
            show_default="never",
        ),
    ] = None,
    bad_rows: Annotated[
        str,
        typer.Option(
            metavar="fail|keep",
            help="End at a row that an expression of its stream fails for, or keep it apart. "
            "Overflows in expressions over several streams end the run.",
        ),
    ] = "fail",
    files_per_batch: Annotated[int, typer.Option(help="Files of each stream in a batch.")] = 1,
    follow: Annotated[
        bool, typer.Option("--follow", help="Read new files as they come, until stopped.")
    ] = False,
    interval: Annotated[
        str | None,
        typer.Option(help="Begin a batch at most so often.", show_default="as soon as can be"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Workers to share the state.", show_default="one per core"),
    ] = None,
    groups: Annotated[
        int, typer.Option(help="Partition groups; fixed for a checkpoint.")
    ] = 256,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="TREE",
            help='Join tree, such as "((a b) c)".',
            show_default="one join per key",
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="ORDERS",
            help='Who probes whom first, such as "a: c b; b: a c".',
            show_default="few shuffles",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory for each worker's state, such as 200MB.",
            show_default="unbounded",
        ),
    ] = None,
    overflow: Annotated[
        str,
        typer.Option(
            metavar="probe|defer",
            help="Join groups where they lie on disk, or make their results by a clean-up.",
        ),
    ] = "probe",
    strategy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME [PARAMETER=VALUE]…",
            help='Who decides what to spill and what to move, such as "lazy-disk theta_r=0.5".',
            show_default="auto, if there is a --memory",
        ),
    ] = None,
    spill_policy: Annotated[
        str | None,
        typer.Option(help="Which groups go to disk first.", show_default="least-productive"),
    ] = None,
    spill_percent: Annotated[
        float | None,
        typer.Option(
            help="Part of the memory that is pushed out at a time.", show_default="30"
        ),
    ] = None,
    assign: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help='The shares of the groups that workers begin with, such as "0.6,0.2,0.2".',
            show_default="equal",
        ),
    ] = None,
    cleanup: Annotated[
        str,
        typer.Option(metavar="end|idle|never", help="When to make what groups on disk owe."),
    ] = "end",
    skew_buffer: Annotated[
        int | None,
        typer.Option(
            metavar="ROWS",
            help="Rows that may wait for workers with more than their share of a batch.",
            show_default="none do",
        ),
    ] = None,
    migrate_at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BATCH[@WORKERS]:PLAN",
            help='Change the plan before a batch, such as "12:((a b) c)"; of some workers '
            'alone with "12@0,3:((a b) c)"; repeatable.',
        ),
    ] = None,
    migration: Annotated[
        str,
        typer.Option(
            metavar="moving-state|parallel-track|auto", help="How the plan is changed."
        ),
    ] = "auto",
    migration_pause: Annotated[
        str, typer.Option(help="How much longer a batch may take for a change by moving state.")
    ] = "500 milliseconds",
    optimizer: Annotated[
        str,
        typer.Option(
            metavar="off|mjoin-init|bjtree-init|exhaustive",
            help="Who looks for better plans while the query runs.",
        ),
    ] = "off",
    replan_when: Annotated[
        str,
        typer.Option(
            metavar="data|memory|refined [PARAMETER=VALUE]…",
            help='When to look, such as "data threshold=0.3".',
        ),
    ] = "data",
    cpu: Annotated[
        float | None,
        typer.Option(
            metavar="CORES",
            help="How many cores a plan may keep busy; inf for as little CPU as can be.",
            show_default="those of the workers",
        ),
    ] = None,
    trigger: Annotated[str | None, typer.Option(hidden=True)] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What Spark's pages call the run.", show_default="after its streams"),
    ] = None,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of Spark's; repeatable."),
    ] = None,
    packages: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP:ARTIFACT:VERSION,…",
            help="Packages for Spark to load, as from Maven.",
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(parser=local_path, metavar="FILE.jsonl", help="File to append events to."),
    ] = None,
) -> None:
    """Join folders of Parquet, CSV or JSON-lines files, read in name order.

    Ends when the files are used up, unless it is to --follow the folders. The same command
    again carries on where it stopped.
    """
    if trigger is not None:
        raise _other_name_of(trigger)
    replace(TRIGGERS, what="--replan-when").parse(replan_when)
    text = query_text(file, q)
    streams = streams_of(stream, files_per_batch)
    check_streams(text, streams)
    # Before Spark starts, which takes seconds.
    known = known_columns(checkpoint)
    check_folders(streams, known, follow=follow)
    if events is not None:
        require_folder(events)
    config = spark_config(conf or (), packages)
    start_spark(master, config)
    question = ask(
        text,
        streams,
        event_time=event_times_of(event_time, streams),
        lateness=lateness,
        idle_timeout=idle_timeout,
    )
    running = question.bound(known).start(
        checkpoint=checkpoint,
        sink=sinks.parquet(out),
        name=name,
        workers=workers,
        groups=groups,
        plan=plan,
        order=order,
        late=late,
        max_ahead=max_ahead,
        bad_rows=bad_rows,
        follow=follow,
        interval=interval,
        events=events,
        memory=memory,
        assign=assign,
        skew_buffer=skew_buffer,
        migrate_at=migrate_at or (),
        migration=migration,
        migration_pause=migration_pause,
        optimizer=optimizer,
        replan_when=replan_when,
        cpu=cpu,
        overflow=overflow,
        strategy=strategy,
        spill_policy=spill_policy,
        spill_percent=spill_percent,
        cleanup=cleanup,
    )
    see_through(running, "; the same command goes on")
    done = running.progress
    others = {
        "with a time out of range": done.out_of_range_rows,
        "too far ahead": done.ahead_rows,
    }
    if done.bad_rows:
        where = checkpoint / BAD_ROWS
        typer.echo(f"kept {done.bad_rows:,} bad rows, with their reasons, in {where}")
    typer.echo(
        f"{done.input_rows:,} rows in {done.batches:,} batches, {done.output_rows:,} results "
        f"in {out}; dropped {done.late_rows:,} late and {done.null_rows:,} null rows"
        + "".join(f", {rows:,} {why}" for why, rows in others.items() if rows)
    )


def _other_name_of(trigger: str) -> BraidError:
    """What is meant by `--trigger`: the optimizer's, by its old name, or one as of Spark."""
    if names_trigger(trigger):
        return BraidError(
            "the option --trigger is called --replan-when now",
            hint=f'write --replan-when "{trigger}"',
        )
    return BraidError(
        "there is no option --trigger",
        hint='how often batches come: --interval "10 seconds"; when to look for a better plan: '
        "--replan-when data",
    )


def query_text(file: Path | None, text: str | None) -> str:
    """The query, which is given in a file or as it is."""
    if (file is None) == (text is None):
        raise BraidError("give the query either as a file or with -q")
    if text is not None:
        return text
    assert file is not None, "one of the two is there"
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    raise BraidError(
        f"cannot read the query {file}: {reason}",
        hint="give a text file, or the query itself with -q",
    )


def streams_of(options: list[str], files_per_batch: int) -> dict[str, FileStream]:
    """The folders that `--stream NAME=DIR` names."""
    streams: dict[str, FileStream] = {}
    for option in options:
        name, equals, folder = option.partition("=")
        if not (name and equals and folder):
            raise BraidError(f"cannot read --stream {option!r}", hint="write --stream NAME=DIR")
        if name.lower() in map(str.lower, streams):
            raise BraidError(
                f"--stream names {name!r} twice", hint="give each stream one folder"
            )
        streams[name] = files(folder, files_per_batch)
    return streams


def event_times_of(
    options: Sequence[str] | None, streams: Mapping[str, FileStream]
) -> dict[str, str]:
    """By stream, what `--event-time` says of it or of all."""
    known = {name.lower(): name for name in streams}
    everywhere, own = [], {}
    for option in options or ():
        name, equals, text = option.partition("=")
        name = name.strip()
        if equals and (name.lower() in known or name.isidentifier()):
            if name.lower() not in known:
                require_known("stream in --event-time:", name, streams)
            own[known[name.lower()]] = text.strip()
        else:
            everywhere.append(option)
    if len(everywhere) > 1:
        raise BraidError(
            f"--event-time says {everywhere[0]!r} and {everywhere[1]!r} of all streams",
            hint=f"say it of one stream: --event-time {next(iter(streams))}={everywhere[1]}",
        )
    default = dict.fromkeys(streams, everywhere[0] if everywhere else "ts")
    return default | own


def check_folders(
    streams: dict[str, FileStream], known: Collection[str], *, follow: bool
) -> None:
    """Refuse folders without one format; one that is followed is waited for.

    Those that are known need no file now.
    """
    for name, stream in streams.items():
        if follow and name not in known and stream.first_complete() is None:
            typer.echo(f"waiting for a complete file in {stream.folder}", err=True)
            while stream.first_complete() is None:
                time.sleep(_LOOK_EVERY_S)
        if stream.names() or name not in known:
            stream.format()


def check_streams(text: str, streams: dict[str, FileStream]) -> None:
    """Name a missing stream before Spark starts."""
    given = {name.lower() for name in streams}
    for name in cql.sources(text):
        if name.lower() not in given:
            raise BraidError(
                f"the query reads stream {name!r}, which has no folder",
                hint=f"add --stream {name}=DIR",
            )
