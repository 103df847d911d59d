"""Expressions as text again, in the one spelling that the normal form of a query has.

Whatever is written here reads back as the very same expression; `call` and `constant` are the
other direction.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import TYPE_CHECKING

from braid.model.expression import Call, Column, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Callable


class Level(IntEnum):
    """How strongly an expression holds together; operands need more than their operator."""

    ANY = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    PRODUCT = 6
    SIGN = 7
    ATOM = 8


Spelled = tuple[str, Level]

_INFIX = {
    "+": Level.SUM,
    "-": Level.SUM,
    "*": Level.PRODUCT,
    "/": Level.PRODUCT,
    "%": Level.PRODUCT,
}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_UNITS = (
    ("DAY", dt.timedelta(days=1)),
    ("HOUR", dt.timedelta(hours=1)),
    ("MINUTE", dt.timedelta(minutes=1)),
    ("SECOND", dt.timedelta(seconds=1)),
    ("MILLISECOND", dt.timedelta(milliseconds=1)),
    ("MICROSECOND", dt.timedelta(microseconds=1)),
)


@dataclass(frozen=True, slots=True)
class Speller:
    """Spells expressions; `column` says how a column is spelled, and how strongly that holds.

    `whole` may spell an expression in a way of its own; None leaves it to this class.
    """

    column: Callable[[Column], Spelled]
    whole: Callable[[Expression], Spelled | None] = lambda _: None

    def text(self, expression: Expression, within: Level = Level.ANY) -> str:
        """An expression, in brackets if it would fall apart within another."""
        text, level = self.whole(expression) or self._spelled(expression)
        return f"({text})" if level < within else text

    def _spelled(self, expression: Expression) -> Spelled:
        match expression:
            case Column():
                return self.column(expression)
            case Literal(value):
                return literal(value)
            case Call("not", (Call("is null", (inner,)),)):
                return f"{self.text(inner, Level.SUM)} IS NOT NULL", Level.COMPARISON
            case Call("not", (Call("in", (inner, *elements)),)):
                return f"{self.text(inner, Level.SUM)} NOT IN {self._list(elements)}", (
                    Level.COMPARISON
                )
            case Call(function, arguments):
                return self._call(function, arguments)

    def _call(self, function: str, arguments: tuple[Expression, ...]) -> Spelled:
        if function in _INFIX:
            level = _INFIX[function]
            left, right = arguments
            above = Level(level + 1)
            return f"{self.text(left, level)} {function} {self.text(right, above)}", level
        if function in _COMPARISONS:
            sides = (self.text(each, Level.SUM) for each in arguments)
            return f" {function} ".join(sides), Level.COMPARISON
        match function:
            case "and" | "or":
                level = Level[function.upper()]
                parts = (self.text(each, Level(level + 1)) for each in arguments)
                return f" {function.upper()} ".join(parts), level
            case "not":
                return f"NOT {self.text(arguments[0], Level.NOT)}", Level.NOT
            case "negate":
                inner = self.text(arguments[0], Level.SIGN)
                return f"- {inner}" if inner.startswith("-") else f"-{inner}", Level.SIGN
            case "is null":
                return f"{self.text(arguments[0], Level.SUM)} IS NULL", Level.COMPARISON
            case "in":
                inner = self.text(arguments[0], Level.SUM)
                return f"{inner} IN {self._list(arguments[1:])}", Level.COMPARISON
            case "case":
                return self._case(arguments), Level.ATOM
        return f"{function}{self._list(arguments)}", Level.ATOM

    def _list(self, elements: tuple[Expression, ...] | list[Expression]) -> str:
        return f"({', '.join(self.text(each) for each in elements)})"

    def _case(self, arguments: tuple[Expression, ...]) -> str:
        texts = [self.text(each) for each in arguments]
        pairs = zip(texts[::2], texts[1::2], strict=False)
        cases = "".join(f" WHEN {condition} THEN {value}" for condition, value in pairs)
        last = f" ELSE {texts[-1]}" if len(texts) % 2 else ""
        return f"CASE{cases}{last} END"


def literal(
    value: bool | int | float | str | Decimal | dt.datetime | dt.date | dt.timedelta | None,
) -> Spelled:
    """A constant.

    >>> literal("it's")[0], literal(Decimal("1.50"))[0], literal(2.0)[0]
    ("'it''s'", '1.50', '2.0D')
    """
    match value:
        case None | bool():
            return str(value).upper().replace("NONE", "NULL"), Level.ATOM
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'", Level.ATOM
        case dt.datetime():
            kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return f"{kind} '{value.isoformat(sep=' ')}'", Level.ATOM
        case dt.date():
            return f"DATE '{value.isoformat()}'", Level.ATOM
        case dt.timedelta():
            return interval(value), Level.ATOM
        case int():
            text = str(value)
        case float():
            text = f"{value!r}D".upper()
        case Decimal():
            text = f"{value:f}" + ("" if "." in f"{value:f}" else "BD")
    return text, Level.SIGN if text.startswith("-") else Level.ATOM


def interval(length: dt.timedelta) -> str:
    """An interval in the largest unit that divides it.

    >>> interval(dt.timedelta(seconds=90)), interval(dt.timedelta(days=-1))
    ('INTERVAL 90 SECONDS', "INTERVAL '-1' DAYS")
    """
    nothing = dt.timedelta(0)
    unit, each = next(found for found in _UNITS[not length and 3 :] if not length % found[1])
    count = length // each
    number = f"'{count}'" if length < nothing else str(count)
    return f"INTERVAL {number} {unit}{'' if count == 1 else 'S'}"
