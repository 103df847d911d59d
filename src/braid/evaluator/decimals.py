"""Arithmetic of decimals, with Spark's rules for digits.

The exact result is computed in 256 bits and then rounded, half away from zero, to the type that
Spark gives it. Operands with so many digits that even 256 bits might not do are an overflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from braid.evaluator.kinds import MOST_DIGITS, Value, as_decimal, cast, is_integer

if TYPE_CHECKING:
    from collections.abc import Callable

_WIDEST = 76  # digits of a decimal256
_LEAST_SCALE = 6  # what Spark keeps of the fraction when digits run out


def add(left: Value, right: Value) -> Value:
    """The sum, with one more digit than the larger operand."""
    return _sum(pc.add, left, right)


def subtract(left: Value, right: Value) -> Value:
    """The difference, with one more digit than the larger operand."""
    return _sum(pc.subtract, left, right)


def _sum(operation: Callable[[Value, Value], Value], left: Value, right: Value) -> Value:
    left, right = _decimal(left), _decimal(right)
    a, b = left.type, right.type
    scale = max(a.scale, b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    # One digit less than the widest: Arrow asks for a place to carry into.
    wide = pa.decimal256(min(digits, _WIDEST) - 1, scale)
    return fitted(operation(cast(left, wide), cast(right, wide)), _bounded(digits, scale))


def multiply(left: Value, right: Value) -> Value:
    """The product, with the digits of both operands."""
    left, right = _decimal(left), _decimal(right)
    a, b = left.type, right.type
    digits, scale = a.precision + b.precision + 1, a.scale + b.scale
    room = min(b.precision, _WIDEST - 1 - a.precision)
    product = pc.multiply(
        cast(left, pa.decimal256(a.precision, a.scale)),
        cast(right, pa.decimal256(room, b.scale)),
    )
    return fitted(product, _bounded(digits, scale))


def remainder(left: Value, right: Value) -> Value:
    """What division leaves; no divisor is zero."""
    left, right = _decimal(left), _decimal(right)
    a, b = left.type, right.type
    scale = max(a.scale, b.scale)
    whole = min(a.precision - a.scale, b.precision - b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale) + scale
    wide = pa.decimal256(min(digits, _WIDEST - 1), scale)
    rest = pc.call_function("remainder", [cast(left, wide), cast(right, wide)])
    return fitted(rest, _bounded(max(whole + scale, 1), scale))


def fitted(value: Value, kind: pa.DataType) -> Value:
    """A decimal in another decimal type, rounded half away from zero."""
    if value.type.scale > kind.scale:
        # All digits that there are: 9.99 rounds to more digits than it had.
        wide = cast(value, pa.decimal256(_WIDEST, value.type.scale))
        value = pc.round(wide, kind.scale, "half_towards_infinity")
    return cast(value, kind)


def _decimal(value: Value) -> Value:
    """An integer as a decimal; a constant one with just the digits that it has, as in Spark."""
    if isinstance(value, pa.Scalar) and is_integer(value.type) and value.is_valid:
        digits = pa.decimal128(len(str(abs(value.as_py()))), 0)
        return cast(cast(value, pa.decimal128(20, 0)), digits)
    return cast(value, as_decimal(value.type))


def _bounded(digits: int, scale: int) -> pa.DataType:
    """Spark's answer to too many digits: shorten the fraction, but not below six places."""
    if digits <= MOST_DIGITS:
        return pa.decimal128(digits, scale)
    whole = digits - scale
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))
