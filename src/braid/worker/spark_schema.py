"""The note in a Parquet file by which Spark knows a column of intervals.

Parquet has no intervals: they are 64-bit integers there, in microseconds. Arrow notes beside
them that they are durations, and Spark notes its own row type; each reads its own note alone.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

NOTE = b"org.apache.spark.sql.parquet.row.metadata"

_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.duration("us"): "interval day to second",
}


def with_note(schema: pa.Schema) -> pa.Schema:
    """A schema with Spark's note, if one of its columns needs it."""
    if not any(pa.types.is_duration(field.type) for field in schema):
        return schema
    row = _struct(schema)
    if row is None:
        return schema
    return schema.with_metadata({**(schema.metadata or {}), NOTE: json.dumps(row).encode()})


def _struct(fields: pa.Schema | pa.StructType) -> dict[str, Any] | None:
    """The row type of some fields; None if Spark has no name for one of them."""
    kinds = [(field.name, _kind(field.type)) for field in fields]
    if any(kind is None for _, kind in kinds):
        return None
    columns = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds
    ]
    return {"type": "struct", "fields": columns}


def _kind(kind: pa.DataType) -> str | dict[str, Any] | None:
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_map(kind):
        key, value = _kind(kind.key_type), _kind(kind.item_type)
        if key is None or value is None:
            return None
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if pa.types.is_list(kind):
        element = _kind(kind.value_type)
        if element is None:
            return None
        return {"type": "array", "elementType": element, "containsNull": True}
    return _NAMES.get(kind)
