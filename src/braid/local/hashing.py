"""Spark's `xxhash64` of columns, in this process.

A hash of several columns is a chain: the hash of one is the seed of the next, and a null leaves
it as it is. Keys are never nested. `tests/spark/test_local.py` asks Spark itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from braid.model.errors import BraidError
from braid.plan.keys import SEED, hash_of_ints, hash_of_longs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from braid.state.groups import Hashes

    Hashing = Callable[[Sequence[pa.Array], int], Hashes]
    """The hashes of so many rows, from the columns of their keys."""

_LONG_DIGITS = 18  # decimals of so many digits are hashed as 64-bit integers


def spark_hashes(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """The hash of each row."""
    hashes = np.full(rows, SEED, np.uint64)
    for column in columns:
        hashed = _hashed(column, hashes)
        hashes = np.where(column.is_null(), hashes, hashed) if column.null_count else hashed
    return hashes


def _hashed(column: pa.Array, seeds: Hashes) -> Hashes:
    """The next link of the chain; whatever for nulls."""
    kind = column.type
    if pa.types.is_floating(kind):
        return _hashed(_bits(column), seeds)
    if pa.types.is_int64(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return hash_of_longs(_filled(column.view(pa.int64()), 0).to_numpy(), seeds)
    if pa.types.is_signed_integer(kind) or pa.types.is_date32(kind):
        return hash_of_ints(_filled(column.cast(pa.int32()), 0).to_numpy(), seeds)
    if pa.types.is_boolean(kind):
        return hash_of_ints(_filled(column, False).cast(pa.int32()).to_numpy(), seeds)
    if pa.types.is_decimal128(kind) and kind.precision <= _LONG_DIGITS:
        words = np.frombuffer(column.buffers()[1], np.int64)  # the lower half comes first
        first, end = column.offset, column.offset + len(column)
        return hash_of_longs(np.ascontiguousarray(words[2 * first : 2 * end : 2]), seeds)
    return _hashed_bytes(column, seeds)


def _hashed_bytes(column: pa.Array, seeds: Hashes) -> Hashes:
    kind = column.type
    values: Iterable[bytes]
    if pa.types.is_decimal128(kind):
        values = _unscaled(column)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = ((value or "").encode() for value in column.to_pylist())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        values = (value or b"" for value in column.to_pylist())
    else:
        raise BraidError(f"a key of type {kind} cannot be hashed in this process")
    links = zip(values, seeds.tolist(), strict=True)
    hashes = [xxhash.xxh64_intdigest(value, seed) for value, seed in links]
    return np.array(hashes, np.uint64)


def _unscaled(decimals: pa.Array) -> Iterator[bytes]:
    """The digits of decimals as Java's `BigInteger.toByteArray` has them: as few as can be."""
    data = decimals.buffers()[1].to_pybytes()
    for place in range(decimals.offset, decimals.offset + len(decimals)):
        number = int.from_bytes(data[16 * place : 16 * place + 16], "little", signed=True)
        length = (number if number >= 0 else ~number).bit_length() // 8 + 1
        yield number.to_bytes(length, "big", signed=True)


def _bits(column: pa.Array) -> pa.Array:
    """Floats as integers: all NaN are alike, and so are 0.0 and -0.0."""
    whole = pa.int32() if pa.types.is_float32(column.type) else pa.int64()
    alike = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
    return pc.add(alike, pa.scalar(0.0, column.type)).view(whole)


def _filled(column: pa.Array, value: object) -> pa.Array:
    return column.fill_null(value) if column.null_count else column
