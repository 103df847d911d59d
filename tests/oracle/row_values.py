"""What an expression means for one row, in plain Python: slow, and free of Arrow and SQL."""

from __future__ import annotations

import datetime as dt
import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

from braid.model.expression import Call, Column, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

EXACT = Context(prec=100, rounding=ROUND_HALF_UP)


def value_of(expression: Expression, cell: Callable[[Column], Any]) -> Any:
    """The value for one row; `cell` gives the row's columns."""
    match expression:
        case Column():
            return cell(expression)
        case Literal(value):
            return value
        case Call(function, arguments):
            values = [value_of(argument, cell) for argument in arguments]
            if function in LENIENT:
                return LENIENT[function](*values)
            if any(value is None for value in values):
                return None
            return STRICT[function](*values)


def _all(*values: bool | None) -> bool | None:
    if any(value is False for value in values):
        return False
    return None if None in values else True


def _any(*values: bool | None) -> bool | None:
    if any(value is True for value in values):
        return True
    return None if None in values else False


def _among(value: Any, *elements: Any) -> bool | None:
    return _any(*(None if None in (value, e) else rank(value, e) == 0 for e in elements))


def _case(*arguments: Any) -> Any:
    for condition, value in zip(arguments[::2], arguments[1::2], strict=False):
        if condition is True:
            return value
    return arguments[-1] if len(arguments) % 2 else None


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _extreme(sign: int, *values: Any) -> Any:
    best = None
    for value in values:
        if best is None or (value is not None and sign * rank(value, best) > 0):
            best = value
    return best


def rank(left: Any, right: Any) -> int:
    """Below, equal to or above zero, as left is below, equal to or above right."""
    left, right = _alike(left, right)
    if isinstance(left, float) and (math.isnan(left) or math.isnan(right)):
        return math.isnan(left) - math.isnan(right)
    return int(left > right) - int(left < right)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values in the type in which they are compared, and numbers computed with."""
    for kind, make in ((float, float), (Decimal, Decimal), (dt.datetime, _moment)):
        if isinstance(left, kind) or isinstance(right, kind):
            return make(left), make(right)
    return left, right


def _moment(value: dt.date) -> dt.datetime:
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    return value if value.tzinfo else value.replace(tzinfo=dt.UTC)


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, dt.datetime) or isinstance(right, dt.datetime):
        return left + right
    left, right = _alike(left, right)
    return EXACT.add(left, right) if isinstance(left, Decimal) else left + right


def _subtract(left: Any, right: Any) -> Any:
    if isinstance(left, dt.date) and isinstance(right, dt.date):
        return _moment(left) - _moment(right)
    if isinstance(left, dt.datetime):
        return left - right
    left, right = _alike(left, right)
    return EXACT.subtract(left, right) if isinstance(left, Decimal) else left - right


def _multiply(left: Any, right: Any) -> Any:
    left, right = _alike(left, right)
    return EXACT.multiply(left, right) if isinstance(left, Decimal) else left * right


def _divide(left: Any, right: Any) -> float | None:
    return float(left) / float(right) if right else None


def _remainder(left: Any, right: Any) -> Any:
    if not right:
        return None
    left, right = _alike(left, right)
    if isinstance(left, float):
        return math.nan if math.isinf(left) else math.fmod(left, right)
    if isinstance(left, Decimal):
        return EXACT.remainder(left, right)
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _sign(value: Any) -> float:
    value = float(value)
    return value if math.isnan(value) else float((value > 0) - (value < 0))


def _power(base: Any, exponent: Any) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except ValueError:
        odd = exponent % 2 == 1
        return math.copysign(math.inf, base if odd else 1) if base == 0 else math.nan


def _exp(value: Any) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _whole(towards: Callable[[Any], int], value: Any) -> int:
    whole = 0 if isinstance(value, float) and math.isnan(value) else towards(value)
    if not -(2**63) <= whole < 2**63:
        raise OverflowError(f"{value} needs more than 64 bits")
    return whole


def rounded(value: Any, places: int = 0) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return value
    name = Decimal(repr(value) if isinstance(value, float) else value)
    if name.is_zero() or -name.as_tuple().exponent <= places:  # type: ignore[operator]
        return value
    near = name.quantize(Decimal(1).scaleb(-places), context=EXACT)
    return type(value)(near)


STRICT: dict[str, Callable[..., Any]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "negate": lambda value: -value,
    "=": lambda a, b: rank(a, b) == 0,
    "<>": lambda a, b: rank(a, b) != 0,
    "<": lambda a, b: rank(a, b) < 0,
    "<=": lambda a, b: rank(a, b) <= 0,
    ">": lambda a, b: rank(a, b) > 0,
    ">=": lambda a, b: rank(a, b) >= 0,
    "not": lambda value: not value,
    "abs": abs,
    "sign": _sign,
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else math.nan,
    "exp": _exp,
    "ln": lambda value: None if value <= 0 else math.log(value),
    "power": _power,
    "floor": lambda value: _whole(math.floor, value),
    "ceil": lambda value: _whole(math.ceil, value),
    "round": rounded,
    "concat": lambda *values: "".join(map(str, values)),
    "length": len,
    "upper": str.upper,
    "lower": str.lower,
}
"""Functions that are null if any argument is."""

LENIENT: dict[str, Callable[..., Any]] = {
    "and": _all,
    "or": _any,
    "is null": lambda value: value is None,
    "in": _among,
    "case": _case,
    "coalesce": _coalesce,
    "greatest": lambda *values: _extreme(1, *values),
    "least": lambda *values: _extreme(-1, *values),
}
"""Functions that do something else with nulls."""
