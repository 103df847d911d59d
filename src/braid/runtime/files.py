"""Folders of files as streams, read in the order of their names.

Spark's own file source goes by the files' time of change, which copying scrambles. So Braid
reads folders itself: each batch takes the next files of every stream, and the commit record
vouches for their names (`braid.state.names`). A batch that was not committed is read again.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from braid.model.errors import BraidError, DamagedFile
from braid.model.paths import local_path
from braid.model.shown import Shown
from braid.runtime.bad_rows import UNREADABLE
from braid.runtime.faults import KEEP, MEND, explain_fault
from braid.runtime.is_complete import is_complete
from braid.runtime.spark_paths import spark_path
from braid.state.checkpoint import sealed_columns

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


@dataclass(frozen=True, slots=True)
class FileColumns:
    """A folder's format and columns, as its first file has them; a checkpoint keeps them.

    So a run that goes on does not ask whatever file is the first by then.
    """

    format: str
    schema: StructType
    parquet: pa.Schema | None = None

    def to_json(self) -> dict[str, Any]:
        """The columns as they stand in a checkpoint."""
        found = {"format": self.format, "schema": self.schema.jsonValue()}
        if self.parquet is not None:
            schema = self.parquet.remove_metadata().serialize()
            found["parquet"] = base64.b64encode(schema).decode()
        return found

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> FileColumns:
        """The columns that stand in a checkpoint."""
        schema = StructType.fromJson(found["schema"])
        if "parquet" not in found:
            return cls(found["format"], schema)
        data = pa.py_buffer(base64.b64decode(found["parquet"]))
        return cls(found["format"], schema, pa.ipc.read_schema(data))

    @classmethod
    def learn(cls, stream: FileStream, spark: SparkSession) -> FileColumns:
        """The columns of a folder's first complete file."""
        kind, first, parquet = stream.format(), stream.first(), None
        if kind == "parquet":
            parquet = _parquet_schema(first)
            _refuse_nanoseconds(first, spark)
        reader = _reader(spark, kind)
        if kind == "csv":
            reader = reader.option("inferSchema", "true")
        elif kind == "json":  # a torn line names no columns; it is seen when it is read
            reader = reader.option("mode", "DROPMALFORMED")
        try:
            schema = reader.format(kind).load(spark_path(Path(first))).schema
        except Exception as fault:
            reason = explain_fault(fault, first)
            if isinstance(reason, BraidError):
                raise reason from None
            raise BraidError(
                f"cannot read the columns of {first}: {reason}", hint=MEND
            ) from None
        if not schema:
            raise BraidError(
                f"{first} names no columns: it is empty, or no row of it is whole", hint=MEND
            )
        return cls(kind, _widened(schema) if kind == "csv" else schema, parquet)


def known_columns(checkpoint: Path) -> dict[str, FileColumns]:
    """The columns of folders, by stream, as a checkpoint knows them; none if it is new."""
    found = sealed_columns(checkpoint)
    try:
        return {stream: FileColumns.from_json(each) for stream, each in found.items()}
    except (AttributeError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise DamagedFile(
            str(checkpoint), f"it does not tell the columns of its files ({error})"
        ) from None


def _refuse_nanoseconds(path: str, spark: SparkSession) -> None:
    """Refuse times that Spark cannot read, and about which it would print a stack trace."""
    if spark.conf.get("spark.sql.legacy.parquet.nanosAsLong", "false") == "true":
        return
    columns = pq.read_metadata(path).schema
    for column in map(columns.column, range(len(columns.names))):
        if json.loads(column.logical_type.to_json()).get("timeUnit") == "nanoseconds":
            raise BraidError(
                f"cannot read {path}: its column {column.path!r} has nanoseconds, "
                "and Spark reads microseconds",
                hint="write the files of this stream with times in microseconds",
            )


def _reader(spark: SparkSession, kind: str) -> DataFrameReader:
    # Without the first option a bracket in a name would be a pattern for other names.
    return spark.read.options(__globPaths__="false", **_OPTIONS[kind])


@dataclass(frozen=True, slots=True)
class FolderReader:
    """Reads one folder's files into frames, all with the same columns."""

    stream: FileStream
    spark: SparkSession
    columns: FileColumns

    @classmethod
    def open(
        cls, stream: FileStream, spark: SparkSession, known: FileColumns | None = None
    ) -> FolderReader:
        """Read by the columns that are known, if files are of that format; else learn them."""
        if known is None or stream.formats() - {known.format}:
            known = FileColumns.learn(stream, spark)
        return cls(stream, spark, known)

    @property
    def schema(self) -> StructType:
        """The columns as Spark has them."""
        return self.columns.schema

    def read(
        self, names: list[str], needed: list[str], *, keeps_bad: bool = False
    ) -> DataFrame:
        """The rows of some files, once their columns are known to be the same.

        Rows that do not fit the columns are an error, or are kept with their text.
        """
        paths = [self.stream.path(name) for name in names]
        for path in paths:
            self._check(path, needed, keeps_bad)
        kind, schema = self.columns.format, self.schema
        reader = _reader(self.spark, kind)
        if keeps_bad and kind != "parquet":
            schema = StructType([*schema.fields, StructField(UNREADABLE, StringType())])
            reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=UNREADABLE)
        if not paths:
            return self.spark.createDataFrame([], schema)
        return (
            reader.schema(schema).format(kind).load([spark_path(Path(path)) for path in paths])
        )

    def _check(self, path: str, needed: list[str], keeps_bad: bool) -> None:
        """Refuse a file of other columns; CSV and JSON values are checked as they are read."""
        if not Path(path).is_file():
            raise BraidError(
                f"{path} is gone since the run started",
                hint="put it back and start again: nothing was lost",
            )
        if self.columns.format == "parquet":
            self._check_parquet(path, needed)
        elif self.columns.format == "json":
            self._check_json(path, keeps_bad)

    def _check_parquet(self, path: str, needed: list[str]) -> None:
        first, this = self.columns.parquet, _parquet_schema(path)
        assert first is not None, "all files have one format"
        for name in needed:
            if name not in this.names:
                raise _other_columns(path, f"it has no column {name!r}")
            if this.field(name).type != first.field(name).type:
                kinds = f"{this.field(name).type}, not {first.field(name).type}"
                raise _other_columns(path, f"its column {name!r} is {kinds}")

    def _check_json(self, path: str, keeps_bad: bool) -> None:
        """Refuse other columns than the stream's, by the first line that is not kept apart."""
        try:
            with open(path, "rb") as file:
                records = map(_json_object, file)
                record = next(filter(None, records) if keeps_bad else records, {})
        except OSError as error:
            raise BraidError(f"cannot read {path}: {error.strerror}", hint=MEND) from None
        if record is None:
            raise BraidError(
                f"cannot read {path}: its first line is not a JSON object",
                hint=f"{MEND}; or {KEEP}",
            )
        strangers = [name for name in record if name not in self.schema.names]
        if strangers:
            raise _other_columns(path, f"it has a column {strangers[0]!r}")


def _json_object(line: bytes) -> dict[str, Any] | None:
    """What a line says, which is nothing if it is blank; `None` if it is no object."""
    try:
        record = json.loads(line) if line.strip() else {}
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


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
    kind, path = stream.format(), stream.first()
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
