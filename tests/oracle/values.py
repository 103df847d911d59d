"""Values of all kinds that keys and payloads may have, edge cases among them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TIME = pa.timestamp("us", "UTC")

KEYS: dict[str, tuple[tuple[pa.DataType, list[Any]], ...]] = {
    "bigint": ((pa.int64(), [0, 1, -1, 2**62, -(2**63), 7]),),
    "int": ((pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31)]),),
    "tinyint": ((pa.int8(), [0, 5, -128, 127]),),
    "date": ((pa.date32(), [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1900, 1, 1)]),),
    "timestamp": ((TIME, [EPOCH, EPOCH + dt.timedelta(microseconds=1)]),),
    "string": ((pa.string(), ["", "a", "ab", "ß", "a" * 40]),),
    "binary": ((pa.binary(), [b"", b"\0", b"\0\0", b"x"]),),
    "boolean": ((pa.bool_(), [True, False]),),
    "decimal": ((pa.decimal128(12, 2), [Decimal("0.00"), Decimal("1.10"), Decimal("-9.99")]),),
    "double": ((pa.float64(), [0.0, -0.0, 1.5, float("nan"), float("inf")]),),
    "pair": ((pa.int64(), [1, 2, 3]), (pa.string(), ["x", "y"])),
}
PAYLOADS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [1, 2, None]),
    (pa.string(), ["p", "", None]),
    (pa.list_(pa.int32()), [[], [1, 2], None]),
    (pa.struct([("x", pa.int32()), ("y", pa.string())]), [{"x": 1, "y": None}, None]),
    (pa.decimal128(10, 3), [Decimal("1.234"), None]),
]
