"""Streams as folders of files, one file per slice of time, their names in order of time.

A file appears whole or not at all: a reader may watch the folder while it fills.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from braid.model.errors import BraidError
from braid.workload.checks import require_number
from braid.workload.rows import rows
from braid.workload.spec import MOST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from braid.workload.spec import WorkloadSpec

Write: TypeAlias = "Callable[[pa.Table, Path], None]"
Take: TypeAlias = "Callable[[int, int], pa.Table]"
"""Gives the rows of a slice `lower_us:upper_us` of a stream."""

MOST_FILES = 100_000
"""More would not sort by name: names have five digits."""


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What was written for one stream."""

    stream: str
    folder: Path
    rows: int
    files: int
    size_bytes: int


def write_files(
    spec: WorkloadSpec,
    stream: str,
    folder: Path,
    *,
    seconds: float,
    file_seconds: float = 5.0,
    kind: str = "parquet",
) -> WrittenFiles:
    """Write the first `seconds` of a stream to a folder, which must be new or empty."""
    take = partial(rows, spec, stream)
    return write_slices(
        take, stream, folder, seconds=seconds, file_seconds=file_seconds, kind=kind
    )


def write_slices(
    take: Take,
    stream: str,
    folder: Path,
    *,
    seconds: float,
    file_seconds: float = 5.0,
    kind: str = "parquet",
) -> WrittenFiles:
    """The same for any stream that can be had slice by slice, by whatever name."""
    write = _writer(kind)
    slices = list(_slices(seconds, file_seconds))
    row_count = size_bytes = 0
    try:
        _open_folder(folder)
        for number, (lower_us, upper_us) in enumerate(slices):
            table = take(lower_us, upper_us)
            row_count += table.num_rows
            size_bytes += _write_whole(write, table, folder / f"part-{number:05d}.{kind}")
    except OSError as error:
        raise BraidError(f"cannot write stream {stream!r} to {folder}: {error}") from None
    return WrittenFiles(stream, folder, row_count, len(slices), size_bytes)


def _writer(kind: str) -> Write:
    if kind not in FORMATS:
        raise BraidError(f"unknown format {kind!r}", hint=f"formats are {', '.join(FORMATS)}")
    return FORMATS[kind]


def _slices(seconds: float, file_seconds: float) -> Iterator[tuple[int, int]]:
    require_number("seconds", seconds, 0.001, MOST_SECONDS)
    require_number("file_seconds", file_seconds, 0.001, MOST_SECONDS)
    end_us, step_us = round(seconds * 1e6), round(file_seconds * 1e6)
    if end_us > MOST_FILES * step_us:
        raise BraidError(
            f"{seconds:g} seconds, {file_seconds:g} to a file, make over {MOST_FILES:,} files",
            hint="let each file hold more seconds",
        )
    for lower_us in range(0, end_us, step_us):
        yield lower_us, min(lower_us + step_us, end_us)


def _open_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise BraidError(
            f"cannot write to {folder}: there are files in it",
            hint="choose another folder, or empty this one",
        )


def _write_whole(write: Write, table: pa.Table, path: Path) -> int:
    # Spark and most others pass over names that begin with a dot.
    hidden = path.with_name(f".{path.name}.tmp")
    write(table, hidden)
    hidden.replace(path)
    return path.stat().st_size


def _write_parquet(table: pa.Table, path: Path) -> None:
    pyarrow.parquet.write_table(table, path)


def _write_csv(table: pa.Table, path: Path) -> None:
    pyarrow.csv.write_csv(table, path)


def _write_jsonl(table: pa.Table, path: Path) -> None:
    with path.open("wb") as file:
        for batch in table.to_batches():
            lines = pa.ListArray.from_arrays([0, batch.num_rows], _json_lines(batch))
            file.write(pc.binary_join(lines, "")[0].as_buffer())


def _json_lines(batch: pa.RecordBatch) -> pa.StringArray:
    """Put the lines together column by column; no value of ours needs escaping."""
    parts: list[pa.StringArray | str] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        quote = "" if pa.types.is_integer(column.type) else '"'
        instant = pa.types.is_timestamp(column.type)
        text = pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ") if instant else column
        opening = ", " if parts else "{"
        parts += [f'{opening}"{name}": {quote}', text.cast(pa.string()), quote]
    return pc.binary_join_element_wise(*parts, "}\n", "")


FORMATS: Mapping[str, Write] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
}
