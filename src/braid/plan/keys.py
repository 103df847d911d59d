"""Join keys and their 64-bit hashes.

The split hashes keys with Spark's `xxhash64`. For most types a hash stands for a key only
until the real keys have been compared. For a single integer-like column it *is* the key:
xxhash64 of one 4- or 8-byte value is a chain of invertible steps, so no two keys share a hash.
Such a key is not sent or stored beside its hash, never needs comparing, and is computed back
from the hash for those rows that reach a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.state.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from braid.state.groups import Hashes

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
SEED = np.uint64(42)
"""Spark's own seed."""


def _inverse(odd: np.uint64) -> np.uint64:
    """The multiplicative inverse of an odd number modulo 2**64."""
    return np.uint64(pow(int(odd), -1, 1 << 64))


_I1, _I2, _I3 = _inverse(_P1), _inverse(_P2), _inverse(_P3)
_START_64 = np.uint64((int(SEED) + int(_P5) + 8) % (1 << 64))
_START_32 = np.uint64((int(SEED) + int(_P5) + 4) % (1 << 64))


def is_exact(types: Sequence[pa.DataType]) -> bool:
    """Whether a key of these column types can be computed back from its hash."""
    return len(types) == 1 and _width(types[0]) is not None


def _width(kind: pa.DataType) -> int | None:
    """How many bytes Spark hashes for a value of an integer-like type."""
    if pa.types.is_int64(kind) or pa.types.is_timestamp(kind):
        return 8
    if pa.types.is_signed_integer(kind) or pa.types.is_date32(kind):
        return 4
    return None


def key_from_hash(hashes: Hashes, kind: pa.DataType) -> pa.Array:
    """The keys whose hashes these are, as an array of an integer-like type."""
    if _width(kind) == 8:
        return pa.array(_unhash_64(hashes)).view(kind)
    return pa.array(_unhash_32(hashes)).cast(pa.int32()).cast(kind)


def hash_of_key(keys: pa.Array) -> Hashes:
    """The inverse of `key_from_hash`: what Spark's xxhash64 makes of integer-like keys."""
    seeds = np.full(len(keys), SEED)
    if _width(keys.type) == 8:
        return hash_of_longs(keys.view(pa.int64()).to_numpy(), seeds)
    return hash_of_ints(keys.cast(pa.int32()).to_numpy(), seeds)


def equal_keys(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> NDArray[np.bool_]:
    """Which rows have equal keys, column by column, as SQL compares; there are no nulls here.

    As in Spark, NaN equals NaN and -0.0 equals 0.0.
    """
    same = np.ones(len(left[0]), np.bool_)
    for a, b in zip(left, right, strict=True):
        equal = pc.equal(a, b)
        if pa.types.is_floating(a.type):
            equal = pc.or_(equal, pc.and_(pc.is_nan(a), pc.is_nan(b)))
        same &= equal.to_numpy(zero_copy_only=False)
    return same


@compiled(inline="always")
def _rotate_right(x: np.uint64, bits: int) -> np.uint64:
    return (x >> np.uint64(bits)) | (x << np.uint64(64 - bits))


@compiled(inline="always")
def _undo_final_mix(x: np.uint64) -> np.uint64:
    x ^= x >> np.uint64(32)
    x *= _I3
    x ^= x >> np.uint64(29) ^ x >> np.uint64(58)
    x *= _I2
    return x ^ x >> np.uint64(33)


@compiled(inline="always")
def _final_mix(x: np.uint64) -> np.uint64:
    x = (x ^ x >> np.uint64(33)) * _P2
    x = (x ^ x >> np.uint64(29)) * _P3
    return x ^ x >> np.uint64(32)


@compiled()
def hash_of_longs(values: NDArray[np.int64], seeds: Hashes) -> Hashes:
    """Spark's xxhash64 of 64-bit values, each with a seed of its own."""
    hashes = np.empty(len(values), np.uint64)
    for row in range(len(values)):
        x = _rotate_right(np.uint64(values[row]) * _P2, 33) * _P1
        x = _rotate_right(x ^ (seeds[row] + _P5 + np.uint64(8)), 37) * _P1 + _P4
        hashes[row] = _final_mix(x)
    return hashes


@compiled()
def hash_of_ints(values: NDArray[np.int32], seeds: Hashes) -> Hashes:
    """Spark's xxhash64 of 32-bit values, each with a seed of its own."""
    hashes = np.empty(len(values), np.uint64)
    for row in range(len(values)):
        x = np.uint64(np.uint32(values[row])) * _P1 ^ (seeds[row] + _P5 + np.uint64(4))
        hashes[row] = _final_mix(_rotate_right(x, 41) * _P2 + _P3)
    return hashes


@compiled()
def _unhash_64(hashes: Hashes) -> NDArray[np.int64]:
    keys = np.empty(len(hashes), np.int64)
    for row in range(len(hashes)):
        x = _undo_final_mix(hashes[row])
        x = _rotate_right((x - _P4) * _I1, 27) ^ _START_64
        keys[row] = np.int64(_rotate_right(x * _I1, 31) * _I2)
    return keys


@compiled()
def _unhash_32(hashes: Hashes) -> NDArray[np.int64]:
    keys = np.empty(len(hashes), np.int64)
    for row in range(len(hashes)):
        x = _undo_final_mix(hashes[row])
        x = (_rotate_right((x - _P3) * _I2, 23) ^ _START_32) * _I1
        keys[row] = np.int64(np.int32(np.uint32(x)))
    return keys
