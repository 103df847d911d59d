"""Comparing values as Spark does: numbers by value, NaN equal to itself and above all else."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from braid.evaluator.kinds import (
    Value,
    cast,
    common,
    is_float,
    is_null,
    misfit,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPARE: dict[str, Callable[[Value, Value], Value]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(symbol: str, left: Value, right: Value) -> Value:
    """Which rows compare as the symbol says; null where either side is."""
    kind = common(left.type, right.type)
    if kind is None or pa.types.is_nested(kind):
        raise misfit(f"cannot compare {left.type} with {right.type}")
    if is_null(kind):
        kind = pa.bool_()
    left, right = cast(left, kind), cast(right, kind)
    found = _COMPARE[symbol](left, right)
    return _with_nan(symbol, found, left, right) if is_float(kind) else found


def _with_nan(symbol: str, found: Value, left: Value, right: Value) -> Value:
    """Put right what IEEE says about NaN, where there is any."""
    nan_left, nan_right = pc.is_nan(left), pc.is_nan(right)
    if not (pc.any(nan_left).as_py() or pc.any(nan_right).as_py()):
        return found
    # The plain `or` and `and`, not Kleene's: a null on either side stays null.
    match symbol:
        case "=":
            return pc.or_(found, pc.and_(nan_left, nan_right))
        case "<>":
            return pc.and_(found, pc.invert(pc.and_(nan_left, nan_right)))
        case "<":
            return pc.or_(found, pc.and_(nan_right, pc.invert(nan_left)))
        case ">":
            return pc.or_(found, pc.and_(nan_left, pc.invert(nan_right)))
        case "<=":
            return pc.or_(found, nan_right)
        case _:
            return pc.or_(found, nan_left)


equal = partial(compare, "=")
not_equal = partial(compare, "<>")
less = partial(compare, "<")
less_equal = partial(compare, "<=")
greater = partial(compare, ">")
greater_equal = partial(compare, ">=")
