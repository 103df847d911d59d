"""What is done in this process is what Spark does: hashes, splits and whole queries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from braid.local.hashing import spark_hashes
from tests.oracle.values import KEYS

pytestmark = pytest.mark.spark

DECIMALS = pa.decimal128(30, 4), ["0", "1.5", "-1.5", "99999999999999999999999999.9999", None]


@pytest.mark.parametrize("name", [*KEYS, "wide decimal", "float"])
def test_keys_hash_as_in_spark(spark, name):
    if name == "wide decimal":
        from decimal import Decimal

        kind, texts = DECIMALS
        parts = ((kind, [None if text is None else Decimal(text) for text in texts]),)
    elif name == "float":
        parts = ((pa.float32(), [0.0, -0.0, 1.5, float("nan"), float("-inf"), None]),)
    else:
        parts = tuple((kind, [*values, None]) for kind, values in KEYS[name])
    rows = max(len(values) for _, values in parts)
    columns = [pa.array((values * rows)[:rows], kind) for kind, values in parts]
    names = [f"c{number}" for number in range(len(columns))]
    frame = spark.createDataFrame(pa.table(columns, names=names))
    zeros = [
        f"({name} + 0)" if pa.types.is_floating(column.type) else name
        for name, column in zip(names, columns, strict=True)
    ]
    zeros = [
        f"CAST({zero} AS {'float' if pa.types.is_float32(column.type) else 'double'})"
        if pa.types.is_floating(column.type)
        else zero
        for zero, column in zip(zeros, columns, strict=True)
    ]
    found = [row[0] for row in frame.selectExpr(f"xxhash64({', '.join(zeros)})").collect()]
    own = spark_hashes(columns, rows)
    assert own.view(np.int64).tolist() == found
