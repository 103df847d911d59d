"""Rounding: `floor`, `ceil`, and `round`, which goes half away from zero.

Of a float Spark rounds the shortest decimal that names it: 1.005 is 1.01 to two places, though
the double is a little less than its name. Binary arithmetic decides all rows but those whose
scaled value lies within its error of a half; these few go through Python's decimals.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.evaluator.decimals import fitted
from braid.evaluator.kinds import (
    INT,
    MOST_DIGITS,
    Value,
    as_decimal,
    cast,
    is_decimal,
    is_float,
    is_integer,
    is_null,
    is_number,
    misfit,
)
from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.floating]

_MOST_PLACES = 400  # no double has a digit so far from the point
_EXACT_PLACES = 22  # 10**22 is the last power of ten that is a double
_EXACT = 2.0**51  # below this a double still has room for a half and an error
_ALL_DIGITS = 1e17  # no double's name has more digits than seventeen
_ROUNDING = Context(prec=2 * _MOST_PLACES, rounding=ROUND_HALF_UP)


def _whole(up: bool, value: Value) -> Value:
    name = "ceil" if up else "floor"
    if is_integer(value.type) or is_null(value.type):
        return cast(value, INT)
    if is_float(value.type):
        return _on_floats(partial(_in_64_bits, np.ceil if up else np.floor), value)
    if not is_decimal(value.type):
        raise misfit(f"cannot compute {name} of {value.type}")
    if value.type.scale == 0:
        return value
    whole = value.type.precision - value.type.scale + 1
    wide = cast(value, pa.decimal256(value.type.precision + 1, value.type.scale))
    return cast(pc.ceil(wide) if up else pc.floor(wide), pa.decimal128(whole, 0))


floor = partial(_whole, False)
ceil = partial(_whole, True)


def round_half_up(value: Value, places: Value | None = None) -> Value:
    """To so many places after the point, or before it if negative; in the same kind."""
    digits = _places(places)
    if is_null(value.type):
        return cast(value, INT)
    if not is_number(value.type):
        raise misfit(f"cannot round {value.type}")
    if is_float(value.type):
        return cast(_on_floats(partial(_rounded, digits), value), value.type)
    if is_decimal(value.type):
        return _round_decimal(value, digits)
    if digits >= 0:
        return value
    return cast(_round_decimal(cast(value, as_decimal(value.type)), digits), value.type)


def _places(places: Value | None) -> int:
    if places is None:
        return 0
    if not (isinstance(places, pa.Scalar) and is_integer(places.type) and places.is_valid):
        raise BraidError("the number of places to round to must be a constant integer")
    return max(-_MOST_PLACES, min(_MOST_PLACES, int(places.as_py())))


def _round_decimal(value: Value, digits: int) -> Value:
    """Spark's types: the fraction shrinks to the places asked for, the rest may carry."""
    scale = min(value.type.scale, max(digits, 0))
    whole = max(value.type.precision - value.type.scale, -digits) + 1
    kind = pa.decimal128(min(whole + scale, MOST_DIGITS), scale)
    if digits >= 0:
        return fitted(value, kind)
    if digits < -MOST_DIGITS:
        return pc.if_else(pc.is_null(value), pa.scalar(None, kind), pa.scalar(Decimal(0), kind))
    wide = cast(value, pa.decimal256(2 * MOST_DIGITS, value.type.scale))
    return fitted(pc.round(wide, digits, "half_towards_infinity"), kind)


def _on_floats(function: Callable[[Floats], NDArray[np.generic]], value: Value) -> Value:
    """Apply a NumPy function to the values that are not null."""
    if isinstance(value, pa.Scalar):
        return _on_floats(function, pa.repeat(value, 1))[0]
    with np.errstate(all="ignore"):
        numbers = function(value.to_numpy(zero_copy_only=False))
    return pa.array(numbers, mask=pc.is_null(value).to_numpy(zero_copy_only=False))


def _in_64_bits(towards: Callable[[Floats], Floats], values: Floats) -> NDArray[np.int64]:
    """Whole numbers; NaN is 0, as in Java, and what is too large an overflow."""
    whole = towards(np.where(np.isnan(values), 0.0, values).astype(np.float64))
    if np.any((whole >= 2.0**63) | (whole < -(2.0**63))):
        raise pa.ArrowInvalid("a whole number needs more than 64 bits")
    return whole.astype(np.int64)


def _rounded(digits: int, values: Floats) -> NDArray[np.float64]:
    exact = values.astype(np.float64)
    scale = 10.0 ** min(abs(digits), _EXACT_PLACES)
    scaled = np.abs(exact * scale if digits >= 0 else exact / scale)
    whole = np.floor(scaled + 0.5)
    result = np.copysign(whole / scale if digits >= 0 else whole * scale, exact)
    error = 4 * np.finfo(values.dtype).eps * scaled
    unsure = (np.abs(scaled - np.floor(scaled) - 0.5) <= error) | (scaled >= _EXACT)
    if abs(digits) > _EXACT_PLACES:
        unsure[:] = True
    else:
        result = np.where(scaled < _ALL_DIGITS, result, exact)
        unsure &= scaled < _ALL_DIGITS
    for row in np.flatnonzero(unsure & np.isfinite(exact)):
        result[row] = _round_name(str(values[row]), digits)
    # Zero comes without a sign, for decimals have none.
    return np.where(np.isfinite(exact), result, exact) + 0.0


def _round_name(name: str, digits: int) -> float:
    return float(Decimal(name).quantize(Decimal(1).scaleb(-digits), context=_ROUNDING))
