"""`braid generate`: synthetic streams as folders of files.

What the options mean is defined in `braid.workload.spec`; this module turns them into a spec.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from braid.model.duration import parse_duration
from braid.model.errors import BraidError
from braid.workload import (
    FORMATS,
    PartitionSpec,
    StreamSpec,
    WorkloadSpec,
    WrittenFiles,
    load_spec,
    write_files,
)


def generate(
    out: Annotated[Path, typer.Option(help="Folder to write to; each stream gets its own.")],
    streams: Annotated[
        str | None, typer.Option(help="Names of the streams, with commas. [default: a,b,c]")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Rows per second of each stream. [default: 1000]")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Length of the streams.")] = 60.0,
    file_seconds: Annotated[float, typer.Option(help="Seconds of a stream per file.")] = 5.0,
    join_rate: Annotated[
        float | None,
        typer.Option(help="What a tuple range adds to the rows per join value. [default: 3]"),
    ] = None,
    tuple_range: Annotated[
        int | None, typer.Option(help="Rows of a tuple range. [default: 30000]")
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(help="Partitions of the keys. [default: 300]")
    ] = None,
    zipf: Annotated[
        float | None, typer.Option(help="Skew of the partitions' load. [default: 0]")
    ] = None,
    disorder: Annotated[
        str | None, typer.Option(help="Longest delay of a row. [default: '0 seconds']")
    ] = None,
    pad: Annotated[
        int | None, typer.Option(help="Bytes of padding per row. [default: 0]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Same seed, same rows. [default: that of --spec, or 1]")
    ] = None,
    spec: Annotated[
        Path | None, typer.Option(help="JSON file that describes the streams instead.")
    ] = None,
    format: Annotated[str, typer.Option(help=f"One of {', '.join(FORMATS)}.")] = "parquet",
) -> None:
    """Write synthetic streams: Poisson arrivals, with the join rates and skew you ask for."""
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
