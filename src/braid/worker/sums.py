"""Sums of integers and decimals that do not fit their type are found, never wrapped round.

Arrow and NumPy wrap. No sum can where all values together fit, each taken for as large as the
largest: that is quickly seen, and nearly always so. Only where it is not, a wider type or two
halves tell for sure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_HALF = 32  # bits
_LOW = (1 << _HALF) - 1
_BEYOND = 1 << (_HALF - 1)
_MOST_HIGH = 10**38 >> 64
"""Decimals whose upper halves are smaller than this have at most 38 digits."""


class SumOverflow(Exception):
    """A sum of the values of a column does not fit its type."""

    def __init__(self, column: str) -> None:
        """Name the column."""
        super().__init__(column)
        self.column = column


def widened(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values to be summed: in a wider type, if a sum of some might not fit theirs."""
    kind = values.type
    if pa.types.is_int64(kind):
        return values if fit(values) else values.cast(pa.decimal128(38, 0))
    if pa.types.is_decimal128(kind):
        return values if fit(values) else values.cast(pa.decimal256(76, kind.scale))
    return values


def fit(values: pa.ChunkedArray) -> bool:
    """Whether any of these integers or decimals surely have a sum of their type."""
    if pa.types.is_decimal(values.type):
        halves = [_upper_halves(chunk) for chunk in values.chunks if len(chunk)]
        largest = max((max(-int(h.min()), int(h.max())) + 1 for h in halves), default=0)
        return largest * len(values) < _MOST_HIGH
    ends = pc.min_max(values).as_py()
    return max(-(ends["min"] or 0), ends["max"] or 0) * len(values) < 1 << 63


def _upper_halves(decimals: pa.Array) -> Integers:
    """The upper 64 of each decimal's 128 bits."""
    words = np.frombuffer(decimals.buffers()[1], np.int64)
    return words[2 * decimals.offset + 1 : 2 * (decimals.offset + len(decimals)) : 2]


def overflowing(level: Callable[[Integers], Integers], values: Integers) -> NDArray[np.bool_]:
    """Which sums of 64-bit integers do not fit 64 bits; `level` makes sums, and may wrap."""
    upper = level(values >> _HALF) + (level(values & _LOW) >> _HALF)
    return (upper < -_BEYOND) | (upper >= _BEYOND)
