"""Terms to calls of the functions that a worker has (`braid.model.expression.FUNCTIONS`).

What SQL says in other words is put into these: `IF` is a `case`, `x || y` is a `concat`. What
cannot be put so is None, and the caller says what that means.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from braid.cql.constant import constant
from braid.cql.sugar import spelled_out
from braid.cql.term import Term, Written, bare, connective, function_call
from braid.model.expression import FUNCTIONS, Call, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Value = Callable[[Written], Expression]

_INFIX = ("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=")

_OTHER_NAMES = {
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "ifnull": "coalesce",
    "lcase": "lower",
    "len": "length",
    "log": "ln",
    "mod": "%",
    "nvl": "coalesce",
    "pow": "power",
    "signum": "sign",
    "ucase": "upper",
}
"""Spark's second names for functions."""

NAMED = tuple(
    name
    for name in FUNCTIONS
    if name.isalpha() and name not in ("and", "case", "in", "negate", "not", "or")
)
"""Those of our functions that are called by their names."""

_ARGUMENTS = {
    "if": 3,
    "ifnull": 2,
    "isnotnull": 1,
    "isnull": 1,
    "log": 1,
    "negative": 1,
    "nvl": 2,
    "positive": 1,
}
"""How many arguments functions take that are put into others with another number."""

_CASE = re.compile(r"CASE( WHEN _ THEN _)+( ELSE _)? END")
_IN = re.compile(r"_( NOT)? IN \( _(?: , _)* \)")


def call(term: Term, value: Value) -> Expression | None:
    """What a term means, if that can be put into our functions; `value` does its operands."""
    longer = spelled_out(term)
    if longer is not None:
        return value(longer)
    shape = term.shape
    if connective(term):
        word = str(term.pieces[1]).lower()
        return flat(word, [value(each) for each in term.operands])
    for way in (_infix, _predicate, _case, _named):
        found = way(shape, term, value)
        if found is not None:
            return found
    return None


def flat(function: str, arguments: Sequence[Expression]) -> Expression:
    """A call of `and`, `or` or `concat`, in which arguments that are the same call dissolve."""
    spread: list[Expression] = []
    for each in arguments:
        same = isinstance(each, Call) and each.function == function
        spread += each.arguments if isinstance(each, Call) and same else [each]
    return Call(function, tuple(spread))


def described(term: Term) -> str:
    """A term by the word that people know it by."""
    first = term.pieces[0]
    if isinstance(first, str) and len(term.pieces) > 1 and term.pieces[1] == "(":
        return f"the function {first}"
    words = [piece for piece in term.pieces if isinstance(piece, str)]
    return " ".join(words[:6]) if words else "this"


def _infix(shape: str, term: Term, value: Value) -> Expression | None:
    for sign in _INFIX:
        if shape == f"_ {sign} _":
            return Call(sign, tuple(value(each) for each in term.operands))
    if shape == "_ || _":
        return flat("concat", [value(each) for each in term.operands])
    if shape == "- _":
        return _negate(value(term.operands[0]))
    if shape == "NOT _":
        return _not(value(term.operands[0]))
    return None


def _negate(inner: Expression) -> Expression:
    match inner:
        case Literal(int() | float() | Decimal() | dt.timedelta() as number) if not isinstance(
            number, bool
        ):
            return Literal(-number)
    return Call("negate", (inner,))


def _not(condition: Expression) -> Expression:
    return Call("not", (condition,))


def _is_null(inner: Expression) -> Expression:
    return Call("is null", (inner,))


def _predicate(shape: str, term: Term, value: Value) -> Expression | None:
    found = _IN.fullmatch(shape)
    if found:
        inside = Call("in", tuple(value(each) for each in term.operands))
        return _not(inside) if found[1] else inside
    match shape:
        case "_ IS NULL":
            return _is_null(value(term.operands[0]))
        case "_ IS NOT NULL":
            return _not(_is_null(value(term.operands[0])))
        case "_ IS TRUE" | "_ IS NOT TRUE":
            true = Call("coalesce", (value(term.operands[0]), Literal(False)))
            return true if "NOT" not in shape else _not(true)
        case "_ IS FALSE" | "_ IS NOT FALSE":
            false = Call("coalesce", (_not(value(term.operands[0])), Literal(False)))
            return false if "NOT" not in shape else _not(false)
    return None


def _case(shape: str, term: Term, value: Value) -> Expression | None:
    if not _CASE.fullmatch(shape):
        return None
    return Call("case", tuple(value(each) for each in term.operands))


def _named(shape: str, term: Term, value: Value) -> Expression | None:
    """A function by its name."""
    found = function_call(term)
    if found is None:
        return None
    name, arguments = found
    values = [value(each) for each in arguments] if _is_ours(name, len(arguments)) else []
    match name, values:
        case "if", [condition, yes, no]:
            return Call("case", (condition, yes, no))
        case "isnull", [inner]:
            return _is_null(inner)
        case "isnotnull", [inner]:
            return _not(_is_null(inner))
        case "positive", [inner]:
            return inner
        case "negative", [inner]:
            return _negate(inner)
        case "concat", [_, _, *_]:
            return flat("concat", values)
    function = _OTHER_NAMES.get(name, name)
    return Call(function, tuple(values)) if values and function in FUNCTIONS else None


def _is_ours(name: str, count: int) -> bool:
    """Whether a function with so many arguments can be put into ours."""
    function = _OTHER_NAMES.get(name, name)
    if name in _ARGUMENTS:
        return count == _ARGUMENTS[name]
    if name not in NAMED and name not in _OTHER_NAMES:
        return False
    fewest, most = FUNCTIONS[function]
    return fewest <= count and (most is None or count <= most)


def own_constant(written: Written) -> Expression | None:
    """A constant as a value, or as our functions of values; None if Spark is to compute it."""
    inner = bare(written)
    found = constant(inner)
    if found is not None or not isinstance(inner, Term) or spelled_out(inner):
        return found
    try:
        return call(inner, _constant_or_stop)
    except _NotOurs:
        return None


class _NotOurs(Exception):
    """A constant that only Spark can compute."""


def _constant_or_stop(written: Written) -> Expression:
    found = own_constant(written)
    if found is None:
        raise _NotOurs
    return found
