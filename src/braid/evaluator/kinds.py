"""Which types there are, and in which type two values meet.

Arrow has more types than Spark. Values become Spark's on their way in (`settled`), so that the
functions need to know a dozen: boolean, integers of 8 to 64 bits, two floats, decimals of up to
38 digits, string, binary, date, timestamps and durations in microseconds, and null, the type of
a bare NULL, which meets them all.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from braid.model.errors import BraidError

Value: TypeAlias = pa.Array | pa.Scalar

INT = pa.int64()
DOUBLE = pa.float64()
DURATION = pa.duration("us")
MOST_DIGITS = 38

_SETTLED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}

is_null = pa.types.is_null
is_boolean = pa.types.is_boolean
is_integer = pa.types.is_signed_integer
is_float = pa.types.is_floating
is_decimal = pa.types.is_decimal128
is_string = pa.types.is_string
is_binary = pa.types.is_binary
is_date = pa.types.is_date
is_timestamp = pa.types.is_timestamp
is_duration = pa.types.is_duration


def misfit(message: str) -> BraidError:
    """The error for types that a function cannot take."""
    return BraidError(message, hint="CAST what does not fit to another type")


def is_number(kind: pa.DataType) -> bool:
    """Whether one can compute with values of this type."""
    return bool(is_integer(kind) or is_float(kind) or is_decimal(kind))


def is_moment(kind: pa.DataType) -> bool:
    """Whether values of this type are moments; a date is its first, in UTC."""
    return bool(is_timestamp(kind) or is_date(kind))


def settled(value: Value) -> Value:
    """A value in Spark's type for it; of times, what is finer than a microsecond is cut off."""
    return cast(value, _spark_type(value.type))


def _spark_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if is_duration(kind):
        return DURATION
    if pa.types.is_decimal(kind) and kind.precision <= MOST_DIGITS:
        return pa.decimal128(kind.precision, kind.scale)
    return _SETTLED.get(kind, kind)


def cast(value: Value, kind: pa.DataType) -> Value:
    """A value in a type that holds it; only floats may lose digits, as they do in Spark."""
    if value.type == kind:
        return value
    return pc.cast(
        value,
        options=pc.CastOptions(
            target_type=kind, allow_float_truncate=True, allow_time_truncate=True
        ),
    )


def common(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both, or None.

    Decimals may need more digits than Spark has: enough to compare, but see `common_column`.
    """
    if left == right or is_null(right):
        return left
    if is_null(left):
        return right
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if is_moment(left) and is_moment(right):
        zones = {kind.tz for kind in (left, right) if is_timestamp(kind)}
        return pa.timestamp("us", zones.pop() if len(zones) == 1 else "UTC")
    return None


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if is_float(left) or is_float(right):
        return DOUBLE
    if is_integer(left) and is_integer(right):
        return max(left, right, key=lambda kind: kind.bit_width)
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    wide = pa.decimal128 if whole + scale <= MOST_DIGITS else pa.decimal256
    return wide(whole + scale, scale)


def common_column(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type of a column with the values of both: `common`, within Spark's digits."""
    kind = common(left, right)
    if kind is not None and pa.types.is_decimal256(kind):
        return pa.decimal128(MOST_DIGITS, kind.scale)
    return kind


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal type that holds the values of an integer type; a decimal type as it is."""
    return pa.decimal128(_DIGITS[kind], 0) if is_integer(kind) else kind
