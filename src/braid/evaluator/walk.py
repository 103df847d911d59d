"""Walking an expression, and what each of its functions is computed by."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.evaluator import arithmetic, choice, comparison, rounding, text
from braid.evaluator.kinds import MOST_DIGITS, Value, settled
from braid.model.errors import BraidError
from braid.model.expression import Call, Column, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray


class ValueOverflow(BraidError):
    """A result that does not fit its type: that of a `call`, if a CAST in it is a cure."""

    def __init__(self, call: Call, kinds: Sequence[pa.DataType]) -> None:
        """Name the operation, with the types of its arguments."""
        can_cast = call.function not in _WHOLE and not any(map(pa.types.is_temporal, kinds))
        super().__init__(
            f"overflow: a result of '{call.function}' for {', '.join(map(str, kinds))} "
            "does not fit its type",
            hint="CAST a column in it to DOUBLE or to a wider DECIMAL"
            if can_cast
            else "leave such combinations out, by a condition in WHERE",
        )
        self.call = call if can_cast else None


_WHOLE = ("ceil", "floor")  # whatever they are given, their results have 64 bits


def evaluate(
    expression: Expression, columns: Callable[[Column], pa.Array], rows: int
) -> pa.Array:
    """The values of an expression for all rows.

    `columns` is asked once for every mention of a column, and answers with `rows` values each
    time. A column alone comes back as it is; functions see it in Spark's type for it.
    All branches of a `case` are computed for all rows.
    """
    if isinstance(expression, Column):
        return columns(expression)
    value = _value(expression, columns)
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def holds(
    expression: Expression, columns: Callable[[Column], pa.Array], rows: int
) -> NDArray[np.bool_]:
    """For which rows a condition is true: neither false nor null."""
    value = choice.truth("a condition", _value(expression, columns))
    if isinstance(value, pa.Scalar):
        return np.full(rows, bool(value.as_py()))
    mask: NDArray[np.bool_] = pc.fill_null(value, False).to_numpy(zero_copy_only=False)
    return mask


def type_of(expression: Expression, types: Callable[[Column], pa.DataType]) -> pa.DataType:
    """The type of an expression's values; a BraidError says which types do not fit."""
    return evaluate(expression, lambda column: pa.array([], types(column)), 0).type


def _value(expression: Expression, columns: Callable[[Column], pa.Array]) -> Value:
    match expression:
        case Column():
            return settled(columns(expression))
        case Literal(value):
            return _constant(value)
        case Call():
            return _apply(expression, [_value(each, columns) for each in expression.arguments])


def _constant(value: object) -> pa.Scalar:
    """A constant in the type that Spark would give it: integers in 32 bits if they fit."""
    if isinstance(value, int) and not isinstance(value, bool):
        if -(2**31) <= value < 2**31:
            return pa.scalar(value, pa.int32())
        if not -(2**63) <= value < 2**63:
            value = Decimal(value)
    try:
        scalar = settled(pa.scalar(value))
    except (pa.ArrowInvalid, OverflowError):
        raise BraidError(f"the constant {value} is out of range") from None
    if pa.types.is_decimal256(scalar.type):
        raise BraidError(f"the constant {value} has more than {MOST_DIGITS} digits")
    return scalar


def _apply(call: Call, values: list[Value]) -> Value:
    try:
        return _FUNCTIONS[call.function](*values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Each function checks its types first, so all that can be wrong are the values.
        raise ValueOverflow(call, [value.type for value in values]) from None


_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.remainder,
    "negate": arithmetic.negate,
    "=": comparison.equal,
    "<>": comparison.not_equal,
    "<": comparison.less,
    "<=": comparison.less_equal,
    ">": comparison.greater,
    ">=": comparison.greater_equal,
    "and": choice.all_of,
    "or": choice.any_of,
    "not": choice.opposite,
    "is null": pc.is_null,
    "in": choice.among,
    "case": choice.case,
    "coalesce": choice.coalesce,
    "greatest": choice.greatest,
    "least": choice.least,
    "abs": arithmetic.absolute,
    "sign": arithmetic.sign,
    "sqrt": arithmetic.square_root,
    "exp": arithmetic.exponential,
    "ln": arithmetic.logarithm,
    "power": arithmetic.power,
    "floor": rounding.floor,
    "ceil": rounding.ceil,
    "round": rounding.round_half_up,
    "concat": text.concat,
    "length": text.length,
    "upper": text.upper,
    "lower": text.lower,
}
