"""Files of folders as frames, all with the columns of the first (`braid.engine.folder`)."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from braid.engine.folder import MEND, FileStream, parquet_schema
from braid.model.errors import BraidError, DamagedFile
from braid.record.checkpoint import sealed_columns
from braid.spark.bad_rows import UNREADABLE
from braid.spark.faults import KEEP, explain_fault
from braid.spark.paths import spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

_OPTIONS = {
    "parquet": {},
    # A quote within quotes is written twice, as all but Spark have it (RFC 4180).
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false", "escape": '"'},
    "json": {"mode": "FAILFAST", "inferTimestamp": "true"},
}


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
            parquet = parquet_schema(first)
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
        first, this = self.columns.parquet, parquet_schema(path)
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


def _other_columns(path: str, difference: str) -> BraidError:
    return BraidError(
        f"{path} has other columns than the files before it: {difference}",
        hint=MEND,
    )
