"""Computing with numbers, moments and durations.

Integers compute in 64 bits, floats in 64 unless both have 32, decimals in Spark's decimal types
(`decimals`). A quotient is a double. What does not fit is an ArrowInvalid, never wrapped round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from braid.evaluator import decimals
from braid.evaluator.comparison import equal
from braid.evaluator.kinds import (
    DOUBLE,
    DURATION,
    INT,
    Value,
    cast,
    common,
    is_date,
    is_decimal,
    is_duration,
    is_float,
    is_integer,
    is_moment,
    is_null,
    is_number,
    misfit,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Operation = Callable[[Value, Value], Value]

_ZERO = pa.scalar(0, pa.int8())


def add(left: Value, right: Value) -> Value:
    """Numbers; durations; a moment and a duration, in either order."""
    left, right = _known(left, right)
    if is_number(left.type) and is_number(right.type):
        return _compute(pc.add_checked, decimals.add, left, right)
    if is_duration(left.type) and is_moment(right.type):
        left, right = right, left
    if is_duration(right.type) and (is_moment(left.type) or is_duration(left.type)):
        left = _instant(left)
        return _in_microseconds(pc.add_checked, left, right, left.type)
    raise misfit(f"cannot add {left.type} and {right.type}")


def subtract(left: Value, right: Value) -> Value:
    """Numbers; durations; a duration from a moment; a moment from a moment: a duration."""
    left, right = _known(left, right)
    if is_number(left.type) and is_number(right.type):
        return _compute(pc.subtract_checked, decimals.subtract, left, right)
    if is_duration(right.type) and (is_moment(left.type) or is_duration(left.type)):
        left = _instant(left)
        return _in_microseconds(pc.subtract_checked, left, right, left.type)
    if is_moment(left.type) and is_moment(right.type):
        left, right = _instant(left), _instant(right)
        return _in_microseconds(pc.subtract_checked, left, right, DURATION)
    raise misfit(f"cannot subtract {right.type} from {left.type}")


def multiply(left: Value, right: Value) -> Value:
    """Numbers only."""
    left, right = _known(left, right)
    if not (is_number(left.type) and is_number(right.type)):
        raise misfit(f"cannot multiply {left.type} by {right.type}")
    return _compute(pc.multiply_checked, decimals.multiply, left, right)


def divide(left: Value, right: Value) -> Value:
    """A double, whatever is divided; null where the divisor is zero."""
    left, right = _known(left, right)
    if not (is_number(left.type) and is_number(right.type)):
        raise misfit(f"cannot divide {left.type} by {right.type}")
    return pc.divide(cast(left, DOUBLE), _without_zero(cast(right, DOUBLE)))


def remainder(left: Value, right: Value) -> Value:
    """What division leaves, with the sign of the dividend; null where the divisor is zero."""
    left, right = _known(left, right)
    if not (is_number(left.type) and is_number(right.type)):
        raise misfit(f"cannot take {left.type} modulo {right.type}")
    return _compute(_remainder, decimals.remainder, left, _without_zero(right))


def _remainder(left: Value, right: Value) -> Value:
    return pc.call_function("remainder", [left, right])


def negate(value: Value) -> Value:
    """Numbers and durations."""
    return pc.negate_checked(_signed("negate", value))


def absolute(value: Value) -> Value:
    """Numbers and durations."""
    return pc.abs_checked(_signed("take abs of", value))


def sign(value: Value) -> Value:
    """-1, 0 or 1, as a double."""
    return pc.sign(_double("sign", value))


def square_root(value: Value) -> Value:
    """NaN for what is negative."""
    return pc.sqrt(_double("sqrt", value))


def exponential(value: Value) -> Value:
    """Powers of e."""
    return pc.exp(_double("exp", value))


def logarithm(value: Value) -> Value:
    """To the base of e; null for what is not positive."""
    value = _double("ln", value)
    return pc.ln(pc.if_else(pc.less_equal(value, 0.0), pa.scalar(None, DOUBLE), value))


def power(base: Value, exponent: Value) -> Value:
    """A double."""
    return pc.power(_double("power", base), _double("power", exponent))


def _compute(plain: Operation, exact: Operation, left: Value, right: Value) -> Value:
    """Apply an operation in the type in which two numbers are computed with."""
    kind = INT
    if is_float(left.type) or is_float(right.type):
        kind = common(left.type, right.type)
    elif is_decimal(left.type) or is_decimal(right.type):
        return exact(left, right)
    return plain(cast(left, kind), cast(right, kind))


def _in_microseconds(plain: Operation, left: Value, right: Value, kind: pa.DataType) -> Value:
    """Apply an operation to moments or durations, as to integers.

    Arrow's own arithmetic of times finds overflows in the garbage that lies under nulls.
    """
    return cast(plain(cast(left, INT), cast(right, INT)), kind)


def _known(left: Value, right: Value) -> tuple[Value, Value]:
    """Give a bare NULL the type that makes sense beside the other argument."""
    return _beside(left, right.type), _beside(right, left.type)


def _beside(value: Value, other: pa.DataType) -> Value:
    if not is_null(value.type):
        return value
    if is_null(other):
        return cast(value, INT)
    return cast(value, DURATION if is_moment(other) else other)


def _instant(value: Value) -> Value:
    return cast(value, pa.timestamp("us", "UTC")) if is_date(value.type) else value


def _without_zero(value: Value) -> Value:
    return pc.if_else(equal(value, _ZERO), pa.scalar(None, value.type), value)


def _signed(verb: str, value: Value) -> Value:
    if is_integer(value.type) or is_null(value.type):
        return cast(value, INT)
    if not (is_number(value.type) or is_duration(value.type)):
        raise misfit(f"cannot {verb} {value.type}")
    return value


def _double(function: str, value: Value) -> Value:
    if not (is_number(value.type) or is_null(value.type)):
        raise misfit(f"cannot compute {function} of {value.type}")
    return cast(value, DOUBLE)
