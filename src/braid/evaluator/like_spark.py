"""Which expressions have the same values here as in Spark, types and errors included.

`braid.evaluator` says where it differs; an expression that may meet one of these differences is
not known to be the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from braid.evaluator.walk import type_of
from braid.model.expression import Call, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.model.expression import Column, Expression

_IN_THE_LAST_DIGIT = ("exp", "ln", "power")
_AS_WIDE_AS_ARGUMENTS = ("+", "-", "*", "negate", "abs", "%")


def difference(expression: Expression, types: Callable[[Column], pa.DataType]) -> str | None:
    """Why an expression may have other values than in Spark; None if it has the same."""
    if not isinstance(expression, Call):
        return None
    found = (difference(each, types) for each in expression.arguments)
    return next(filter(None, found), None) or _own_difference(expression, types)


def _own_difference(call: Call, types: Callable[[Column], pa.DataType]) -> str | None:
    kinds = [type_of(each, types) for each in call.arguments]
    if call.function in _IN_THE_LAST_DIGIT:
        return f"{call.function} may differ in the last digit"
    if call.function in ("/", "%"):
        if any(map(pa.types.is_decimal, kinds)):
            return f"{call.function!r} of decimals has another type"
        divisor = call.arguments[1]
        if not (isinstance(divisor, Literal) and divisor.value):
            return f"{call.function!r} by zero is an error in Spark"
    narrow = all(map(pa.types.is_integer, kinds)) and max(k.bit_width for k in kinds) < 64
    if call.function in _AS_WIDE_AS_ARGUMENTS and narrow:
        return f"{call.function!r} of integers below BIGINT has another type"
    return None
