from __future__ import annotations

import datetime as dt
import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.plan.keys import equal_keys, hash_of_key, is_exact, key_from_hash

LAW = settings(deadline=None)  # the first call may compile

UTC = pa.timestamp("us", "UTC")
INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def spark_hash(kind: pa.DataType, value: Any) -> int:
    """Spark's xxhash64 of one integer-like value, by an independent implementation."""
    number = pa.scalar(value, kind).cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    form = "<q" if kind.bit_width == 64 else "<i"
    return xxhash.xxh64_intdigest(struct.pack(form, number.as_py()), seed=42)


def there_and_back(values: list[Any], kind: pa.DataType) -> list[Any]:
    hashes = np.array([spark_hash(kind, value) for value in values], np.uint64)
    keys = key_from_hash(hashes, kind)
    assert keys.type == kind
    assert (hash_of_key(keys) == hashes).all()
    return keys.to_pylist()


@pytest.mark.parametrize("bits", INTEGERS)
@LAW
@given(data=st.data())
def test_an_integer_of_any_width_comes_back_from_its_hash(
    bits: int, data: st.DataObject
) -> None:
    within = st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    values = data.draw(st.lists(within, max_size=20))
    assert there_and_back(values, INTEGERS[bits]) == values


@pytest.mark.parametrize("bits", INTEGERS)
def test_the_edges_of_every_width_come_back_from_their_hashes(bits: int) -> None:
    top = 2 ** (bits - 1)
    values = [0, 1, -1, top - 1, -top]
    assert there_and_back(values, INTEGERS[bits]) == values


def test_dates_and_times_come_back_from_their_hashes() -> None:
    dates = [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
    assert there_and_back(dates, pa.date32()) == dates
    moment = dt.datetime(2024, 1, 1, 12, 0, 0, 123_456)
    assert there_and_back([moment], pa.timestamp("us")) == [moment]
    zoned = moment.replace(tzinfo=dt.UTC)
    assert there_and_back([zoned], UTC) == [zoned]


@pytest.mark.parametrize(
    ("types", "exact"),
    [
        ([pa.int8()], True),
        ([pa.int64()], True),
        ([pa.date32()], True),
        ([UTC], True),
        ([pa.string()], False),
        ([pa.bool_()], False),
        ([pa.float64()], False),
        ([pa.decimal128(10, 2)], False),
        ([pa.int64(), pa.int64()], False),
    ],
)
def test_a_single_integer_like_column_is_its_hash_and_nothing_else_is(
    types: list[pa.DataType], exact: bool
) -> None:
    assert is_exact(types) == exact


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_floating_keys_compare_as_in_spark(kind: pa.DataType) -> None:
    left = pa.array([math.nan, -0.0, 1.0, math.nan, math.inf, 0.0], kind)
    right = pa.array([math.nan, 0.0, 1.0, 1.0, -math.inf, 5e-30], kind)
    assert equal_keys([left], [right]).tolist() == [True, True, True, False, False, False]


def test_a_key_of_several_columns_is_equal_if_all_of_them_are() -> None:
    left = [pa.array([1, 1, 2]), pa.array(["x", "y", "x"])]
    right = [pa.array([1, 1, 1]), pa.array(["x", "x", "x"])]
    assert equal_keys(left, right).tolist() == [True, False, False]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_text_compares_byte_by_byte(kind: pa.DataType) -> None:
    left = pa.array(["a", "A", "\u00e9", ""], kind)
    right = pa.array(["a", "a", "e\u0301", " "], kind)
    assert equal_keys([left], [right]).tolist() == [True, False, False, False]


def test_no_rows_compare_to_no_answer() -> None:
    nothing = pa.array([], pa.string())
    assert equal_keys([nothing], [nothing]).tolist() == []
