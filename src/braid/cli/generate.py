"""`braid generate`: synthetic streams as folders of files; `braid generate nexmark`: NEXMark's.

What the options mean is defined in `braid.workload.spec` and `braid.workload.nexmark.spec`;
this module turns them into specs.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from braid.model.duration import parse_duration
from braid.model.errors import BraidError
from braid.model.paths import local_path
from braid.workload import (
    FORMATS,
    PartitionSpec,
    StreamSpec,
    WorkloadSpec,
    WrittenFiles,
    load_spec,
    nexmark,
    write_files,
    write_slices,
)

generate = typer.Typer(invoke_without_command=True, no_args_is_help=True)


@generate.callback()
def generate_streams(
    context: typer.Context,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=local_path,
            metavar="DIR",
            help="Folder to write to; each stream gets its own.",
        ),
    ] = None,
    streams: Annotated[
        str | None,
        typer.Option(help="Names of the streams, with commas.", show_default="a,b,c"),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Rows per second of each stream.", show_default="1000")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Length of the streams.")] = 60.0,
    file_seconds: Annotated[float, typer.Option(help="Seconds of a stream per file.")] = 5.0,
    join_rate: Annotated[
        float | None,
        typer.Option(
            help="What a tuple range adds to the rows per join value.", show_default="3"
        ),
    ] = None,
    tuple_range: Annotated[
        int | None, typer.Option(help="Rows of a tuple range.", show_default="30000")
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(help="Partitions of the keys.", show_default="300")
    ] = None,
    zipf: Annotated[
        float | None, typer.Option(help="Skew of the partitions' load.", show_default="0")
    ] = None,
    disorder: Annotated[
        str | None, typer.Option(help="Longest delay of a row.", show_default="'0 seconds'")
    ] = None,
    pad: Annotated[
        int | None, typer.Option(help="Bytes of padding per row.", show_default="0")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Same seed, same rows.", show_default="that of --spec, or 1"),
    ] = None,
    spec: Annotated[
        Path | None, typer.Option(help="JSON file that describes the streams instead.")
    ] = None,
    format: Annotated[str, typer.Option(help=f"One of {', '.join(FORMATS)}.")] = "parquet",
) -> None:
    """Write synthetic streams: Poisson arrivals, with the join rates and skew you ask for."""
    if context.invoked_subcommand is not None:
        return _refuse_options_before(context, context.invoked_subcommand)
    if out is None:
        raise BraidError("option --out is missing", hint="add --out DIR")
    described = {
        "streams": streams,
        "rate": rate,
        "join-rate": join_rate,
        "tuple-range": tuple_range,
        "partitions": partitions,
        "zipf": zipf,
        "disorder": disorder,
        "pad": pad,
    }
    chosen = {name: value for name, value in described.items() if value is not None}
    workload = _described(chosen) if spec is None else _loaded(spec, chosen)
    if seed is not None:
        workload = replace(workload, seed=seed)
    for stream in workload.streams:
        written = write_files(
            workload,
            stream.name,
            out / stream.name,
            seconds=seconds,
            file_seconds=file_seconds,
            kind=format,
        )
        typer.echo(_summary(written))


@generate.command("nexmark")
def generate_nexmark(
    out: Annotated[
        Path,
        typer.Option(
            parser=local_path,
            metavar="DIR",
            help="Folder for the folders person, auction, bid.",
        ),
    ],
    rate: Annotated[int, typer.Option(help="Events per second of all three.")] = 10_000,
    seconds: Annotated[float, typer.Option(help="Length of the streams.")] = 60.0,
    file_seconds: Annotated[float, typer.Option(help="Seconds of a stream per file.")] = 5.0,
    seed: Annotated[int, typer.Option(help="Same seed, same rows.")] = 1,
    format: Annotated[str, typer.Option(help=f"One of {', '.join(FORMATS)}.")] = "parquet",
) -> None:
    """Write the NEXMark benchmark's streams: people, their auctions, and bids for these."""
    spec = nexmark.NexmarkSpec(rate=rate, seed=seed)
    for stream in nexmark.STREAMS:
        written = write_slices(
            partial(nexmark.rows, spec, stream),
            stream,
            out / stream,
            seconds=seconds,
            file_seconds=file_seconds,
            kind=format,
        )
        typer.echo(_summary(written))


def _refuse_options_before(context: typer.Context, command: str) -> None:
    """The options of two commands have the same names: one before the word would be lost."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = f"--{name.replace('_', '-')}"
            raise BraidError(
                f"cannot use {option} before {command}",
                hint=f"write braid generate {command} {option} ...",
            )


def _loaded(path: Path, chosen: dict[str, str | float | int]) -> WorkloadSpec:
    for name in chosen:
        raise BraidError(
            f"cannot combine --spec with --{name}",
            hint=f"say it in {path}, or leave --spec out",
        )
    return load_spec(path)


def _described(chosen: dict[str, str | float | int]) -> WorkloadSpec:
    names = str(chosen.get("streams", "a,b,c")).split(",")
    rate = float(chosen.get("rate", 1000.0))
    entry = PartitionSpec(
        count=int(chosen.get("partitions", 300)),
        join_rate=float(chosen.get("join-rate", 3.0)),
        tuple_range=int(chosen.get("tuple-range", 30_000)),
    )
    return WorkloadSpec(
        streams=tuple(StreamSpec(name.strip(), rate) for name in names),
        partitions=(entry,),
        zipf=float(chosen.get("zipf", 0.0)),
        disorder_seconds=parse_duration(str(chosen.get("disorder", "0 seconds"))) / 1e6,
        pad_bytes=int(chosen.get("pad", 0)),
        seed=1,
    )


def _summary(written: WrittenFiles) -> str:
    return (
        f"{written.stream}: {written.rows:,} rows in {written.files:,} files,"
        f" {written.size_bytes / 1e6:,.1f} MB, {written.folder}"
    )
