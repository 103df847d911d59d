"""Folders of files as streams, read in the order of their names.

Spark's own file source goes by the files' time of change, which copying scrambles. So Braid
reads folders itself: each batch takes the next files of every stream, and the commit record
vouches for their names (`braid.state.names`). A batch that was not committed is read again.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from braid.model.errors import BraidError
from braid.model.paths import local_path
from braid.model.shown import Shown
from braid.runtime.bad_rows import UNREADABLE
from braid.runtime.faults import MEND, explain_fault

if TYPE_CHECKING:
    import os

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_BATCH = re.compile(r"((?:^|/)(?:__)?batch=)([0-9]+)(?=/)")
_SPARK_TIME = pa.timestamp("us", "UTC")
_OPTIONS = {
    "parquet": {},
    # A quote within quotes is written twice, as all but Spark have it (RFC 4180).
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false", "escape": '"'},
    "json": {"mode": "FAILFAST", "inferTimestamp": "true"},
}


@dataclass(frozen=True, slots=True, repr=False)
class FileStream(Shown):
    """A folder of Parquet, CSV or JSON-lines files; its columns are those of its first file."""

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
        formats = {FORMATS[Path(name).suffix.lower()] for name in self.names()}
        if not formats:
            raise BraidError(
                f"the folder {self.folder} has no Parquet, CSV or JSON-lines file",
                hint=f"names must end in one of {', '.join(FORMATS)}",
            )
        if len(formats) > 1:
            raise BraidError(
                f"the folder {self.folder} mixes {' and '.join(sorted(formats))} files",
                hint="keep one format per stream",
            )
        return formats.pop()

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


@dataclass(slots=True)
class FolderReader:
    """Reads one folder's files into frames, all with the columns of the first."""

    stream: FileStream
    spark: SparkSession
    format: str = field(init=False)
    schema: StructType = field(init=False)
    _first: str = field(init=False)
    _first_parquet: pa.Schema | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Learn the columns from the first file."""
        self.format = self.stream.format()
        self._first = self.stream.path(self.stream.names()[0])
        if self.format == "parquet":
            # Now: the file may be gone when others come.
            self._first_parquet = _parquet_schema(self._first)
            self._refuse_nanoseconds()
        reader = self._reader()
        if self.format == "csv":
            reader = reader.option("inferSchema", "true")
        try:
            schema = reader.format(self.format).load(self._first).schema
        except Exception as fault:
            reason = explain_fault(fault, self._first)
            if isinstance(reason, BraidError):
                raise reason from None
            raise BraidError(
                f"cannot read the columns of {self._first}: {reason}", hint=MEND
            ) from None
        if not schema:
            raise BraidError(f"{self._first} is empty, so it names no columns", hint=MEND)
        self.schema = _widened(schema) if self.format == "csv" else schema

    def _refuse_nanoseconds(self) -> None:
        """Refuse times that Spark cannot read, and about which it would print a stack trace."""
        if self.spark.conf.get("spark.sql.legacy.parquet.nanosAsLong", "false") == "true":
            return
        columns = pq.read_metadata(self._first).schema
        for column in map(columns.column, range(len(columns.names))):
            if json.loads(column.logical_type.to_json()).get("timeUnit") == "nanoseconds":
                raise BraidError(
                    f"cannot read {self._first}: its column {column.path!r} has nanoseconds, "
                    "and Spark reads microseconds",
                    hint="write the files of this stream with times in microseconds",
                )

    def _reader(self) -> DataFrameReader:
        # Without the first option a bracket in a name would be a pattern for other names.
        return self.spark.read.options(__globPaths__="false", **_OPTIONS[self.format])

    def read(
        self, names: list[str], needed: list[str], *, keeps_bad: bool = False
    ) -> DataFrame:
        """The rows of some files, once their columns are known to be the same.

        Rows that do not fit the columns are an error, or are kept with their text.
        """
        paths = [self.stream.path(name) for name in names]
        for path in paths:
            self._check(path, needed)
        reader, schema = self._reader(), self.schema
        if keeps_bad and self.format != "parquet":
            schema = StructType([*schema.fields, StructField(UNREADABLE, StringType())])
            reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=UNREADABLE)
        if not paths:
            return self.spark.createDataFrame([], schema)
        return reader.schema(schema).format(self.format).load(paths)

    def _check(self, path: str, needed: list[str]) -> None:
        """Refuse a file of other columns; CSV and JSON values are checked as they are read."""
        if not Path(path).is_file():
            raise BraidError(
                f"{path} is gone since the run started",
                hint="put it back and start again: nothing was lost",
            )
        if self.format == "parquet":
            self._check_parquet(path, needed)
        elif self.format == "json":
            self._check_json(path)

    def _check_parquet(self, path: str, needed: list[str]) -> None:
        first, this = self._first_parquet, _parquet_schema(path)
        assert first is not None, "all files have one format"
        for name in needed:
            if name not in this.names:
                raise _other_columns(path, f"it has no column {name!r}")
            if this.field(name).type != first.field(name).type:
                kinds = f"{this.field(name).type}, not {first.field(name).type}"
                raise _other_columns(path, f"its column {name!r} is {kinds}")

    def _check_json(self, path: str) -> None:
        try:
            with open(path, encoding="utf-8") as file:
                line = file.readline()
            record = json.loads(line) if line.strip() else {}
        except OSError as error:
            raise BraidError(f"cannot read {path}: {error.strerror}", hint=MEND) from None
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise BraidError(
                f"cannot read {path}: its first line is not a JSON object", hint=MEND
            )
        strangers = [name for name in record if name not in self.schema.names]
        if strangers:
            raise _other_columns(path, f"it has a column {strangers[0]!r}")


def _widened(schema: StructType) -> StructType:
    """Integers of a CSV file as 64 bits: how many digits its first file has says nothing."""
    wide = [
        StructField(f.name, LongType()) if isinstance(f.dataType, IntegerType) else f
        for f in schema.fields
    ]
    return StructType(wide)


def _parquet_schema(path: str) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise BraidError(
            f"cannot read {path}: {reason}",
            hint=MEND,
        ) from None


def _other_columns(path: str, difference: str) -> BraidError:
    return BraidError(
        f"{path} has other columns than the files before it: {difference}",
        hint=MEND,
    )


def arrow_schema(stream: FileStream) -> pa.Schema:
    """The columns of a folder's first file, as far as Arrow can tell them without Spark."""
    kind = stream.format()
    path = stream.path(stream.names()[0])
    if kind == "parquet":
        # To Spark, nanoseconds are those of its own old format, in which times are instants.
        return _with_times(_parquet_schema(path), pa.timestamp("ns"))
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
