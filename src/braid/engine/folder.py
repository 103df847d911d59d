"""Folders of files as streams, read in the order of their names.

Spark's own file source goes by the files' time of change, which copying scrambles. So Braid
reads folders itself: each batch takes the next files of every stream, and the commit record
vouches for their names (`braid.record.names`). A batch that was not committed is read again.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from braid.engine.is_complete import is_complete
from braid.model.errors import BraidError
from braid.model.paths import local_path
from braid.model.shown import Shown

if TYPE_CHECKING:
    import os

MEND = "mend the file, or move it out of the folder, and start again: nothing was lost"

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_BATCH = re.compile(r"((?:^|/)(?:__)?batch=)([0-9]+)(?=/)")
_SPARK_TIME = pa.timestamp("us", "UTC")


class NoFileYet(BraidError):
    """A folder has no complete file that could tell its columns; one may come."""


@dataclass(frozen=True, slots=True, repr=False)
class FileStream(Shown):
    """A folder of Parquet, CSV or JSON-lines files, all with the columns of the first."""

    folder: Path
    files_per_batch: int = 1

    def _facts(self) -> dict[str, object]:
        return {"folder": self.folder, "files per batch": self.files_per_batch}

    def names(self) -> list[str]:
        """The files there are now, in order, relative to the folder.

        Names are in the order of their characters, but batches of a query's output in that of
        their numbers.
        """
        if not self.folder.is_dir():
            raise BraidError(
                f"the folder {self.folder} does not exist", hint="check the path of the stream"
            )
        found = (p.relative_to(self.folder) for p in self.folder.rglob("*") if p.is_file())
        visible = (p for p in found if not any(map(_is_hidden, p.parts)))
        names = (str(p) for p in visible if p.suffix.lower() in FORMATS)
        return sorted(names, key=_place_in_order)

    def format(self) -> str:
        """The one format of the folder's files."""
        formats = self.formats()
        if not formats:
            raise NoFileYet(
                f"the folder {self.folder} has no Parquet, CSV or JSON-lines file",
                hint="put one complete file there first; names must end in one of "
                f"{', '.join(FORMATS)}",
            )
        if len(formats) > 1:
            raise BraidError(
                f"the folder {self.folder} mixes {' and '.join(sorted(formats))} files",
                hint="keep one format per stream",
            )
        return formats.pop()

    def formats(self) -> set[str]:
        """The formats of all files there are now."""
        return {FORMATS[Path(name).suffix.lower()] for name in self.names()}

    def first_complete(self) -> str | None:
        """Where the first file is that is complete, if one is."""
        now_s = time.time()
        return next((p for p in map(self.path, self.names()) if is_complete(p, now_s)), None)

    def first(self) -> str:
        """Where the file is that tells the columns: the first that is complete.

        CSV and JSON files do not say that they are complete. So if all have just changed, it
        is the first of them.
        """
        found = self.first_complete()
        if found is None and self.format() != "parquet":
            found = next(map(self.path, self.names()), None)
        if found is None:
            raise NoFileYet(
                f"cannot read {self.path(next(iter(self.names()), ''))}: it is not complete",
                hint=f"put one complete file there first, or {MEND}",
            )
        return found

    def would_list(self, place: Path) -> bool:
        """Whether files that come to be at a place, or below it, are listed as input.

        Links to other folders are not followed when files are listed.
        """
        folder, place = self.folder.resolve(), place.resolve()
        if not place.is_relative_to(folder):
            return False
        return not any(map(_is_hidden, place.relative_to(folder).parts))

    def path(self, name: str) -> str:
        """Where a file is."""
        return str(self.folder.absolute() / name)


def _place_in_order(name: str) -> str:
    return _BATCH.sub(lambda found: found[1] + found[2].zfill(20), name)


def _is_hidden(name: str) -> bool:
    """Whether Spark's own file source would pass a file or folder over, by its name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def files(folder: str | os.PathLike[str], files_per_batch: int = 1) -> FileStream:
    """A folder of files as a stream, `files_per_batch` of them in each batch."""
    if files_per_batch < 1:
        raise BraidError(f"files per batch must be at least 1, not {files_per_batch}")
    return FileStream(local_path(folder), files_per_batch)


def parquet_schema(path: str) -> pa.Schema:
    """The columns of a Parquet file."""
    try:
        return pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise BraidError(
            f"cannot read {path}: {reason}",
            hint=MEND,
        ) from None


def arrow_schema(stream: FileStream) -> pa.Schema:
    """The columns of a folder's first file, as far as Arrow can tell them without Spark."""
    kind, path = stream.format(), stream.first()
    if kind == "parquet":
        # To Spark, nanoseconds are those of its own old format, in which times are instants.
        return _with_times(parquet_schema(path), pa.timestamp("ns"))
    try:
        if kind == "csv":
            with pyarrow.csv.open_csv(path) as reader:
                schema = reader.schema
        else:
            schema = _with_moments(pyarrow.json.read_json(path))
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise BraidError(f"cannot read the columns of {path}: {reason}", hint=MEND) from None
    # Arrow takes whole seconds and dates with times for other types than Spark does.
    return _with_times(schema)


def _with_times(schema: pa.Schema, kind: pa.DataType | None = None) -> pa.Schema:
    """Columns of which all times, or those of one kind, are Spark's."""
    return pa.schema(
        field.with_type(_SPARK_TIME)
        if pa.types.is_timestamp(field.type) and kind in (None, field.type)
        else field
        for field in schema
    )


def _with_moments(table: pa.Table) -> pa.Schema:
    """A JSON file's columns: strings that read as moments are taken for them, as in Spark."""
    fields = zip(table.schema, table.columns, strict=True)
    return pa.schema(
        field.with_type(_SPARK_TIME) if _are_moments(column) else field
        for field, column in fields
    )


def _are_moments(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_string(column.type):
        return False
    texts = column.drop_null().slice(0, 100).to_pylist()
    try:
        return bool(texts) and all(dt.datetime.fromisoformat(text) for text in texts)
    except ValueError:
        return False
