"""Constants as Python's values: numbers, strings, dates, intervals.

Some constants are Spark's to compute, such as a TIMESTAMP without a time zone, which means
another moment in each session; those are None here.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from braid.cql.interval import interval_us
from braid.cql.term import Term, Written, bare
from braid.model.expression import Literal

if TYPE_CHECKING:
    from braid.cql.place import Place

_WORDS = {"NULL": None, "TRUE": True, "FALSE": False}
_NUMBER = re.compile(
    r"(?P<digits>\d+\.?\d*|\.\d+)(?P<exponent>E[+-]?\d+)?(?P<suffix>[LSYDF]|BD)?"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d{1,6})?)\s*(Z|UTC|[+-]\d\d:\d\d)?"
)
_MOST_DIGITS = 38
_INT64 = 2**63


def constant(written: Written) -> Literal | None:
    """The value of a literal, perhaps with a sign."""
    term = bare(written)
    if not isinstance(term, Term):
        return None
    if term.string is not None:
        return Literal(term.string)
    shape = term.shape
    if shape in _WORDS:
        return Literal(_WORDS[shape])
    if shape.startswith("INTERVAL ") and not term.operands:
        length = interval_us(shape.removeprefix("INTERVAL "))
        return None if length is None else _interval(length, term.place)
    if shape == "- _":
        return _negative(term.operands[0])
    if len(term.operands) == 1 and len(term.pieces) == 2:
        return _typed(str(term.pieces[0]), term.operands[0])
    return _number(shape.replace(" ", ""), term.place)


def number(written: Written) -> int | None:
    """The value of a whole number, such as an ordinal of GROUP BY."""
    found = constant(written)
    if found is None or isinstance(found.value, bool) or not isinstance(found.value, int):
        return None
    return found.value


def _interval(length_us: int, place: Place) -> Literal:
    try:
        return Literal(dt.timedelta(microseconds=length_us))
    except OverflowError as error:
        raise place.error(
            "the interval is too long", hint="the longest is 999,999,999 days"
        ) from error


def _negative(written: Written) -> Literal | None:
    inner = bare(written)
    if isinstance(inner, Term) and inner.shape == f"{_INT64}":
        return Literal(-_INT64)  # without its sign it would be none of 64 bits
    found = constant(inner)
    match found:
        case Literal(bool() | str() | None) | None:
            return None
        case Literal(int() | float() | Decimal() | dt.timedelta() as value):
            return Literal(-value)
    return None


def _number(text: str, place: Place) -> Literal | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    suffix = found["suffix"]
    if suffix in ("D", "F") or (found["exponent"] and suffix != "BD"):
        return _float(found["digits"] + (found["exponent"] or ""), place)
    whole, _, fraction = found["digits"].partition(".")
    if len(whole.lstrip("0")) + len(fraction) > _MOST_DIGITS or found["exponent"]:
        raise place.error("the number has too many digits", hint=f"{_MOST_DIGITS} are the most")
    if found["digits"].isdigit() and suffix != "BD" and int(found["digits"]) < _INT64:
        return Literal(int(found["digits"]))
    if suffix in ("L", "S", "Y"):
        raise place.error("the number does not fit its type", hint="leave out its suffix")
    return Literal(Decimal(found["digits"]))


def _float(text: str, place: Place) -> Literal:
    value = float(text)
    if value == float("inf"):
        raise place.error("the number is too large", hint="the largest is about 1.8e308")
    return Literal(value)


def _typed(kind: str, written: Written) -> Literal | None:
    """A string with a type before it, such as DATE '2026-01-31'."""
    text = written.string.strip() if isinstance(written, Term) and written.string else ""
    try:
        if kind == "DATE" and _DATE.fullmatch(text):
            return Literal(dt.date.fromisoformat(text))
        time = _TIME.fullmatch(text) if kind.startswith("TIMESTAMP") else None
        if time and kind == "TIMESTAMP_NTZ" and not time[3]:
            return Literal(dt.datetime.fromisoformat(f"{time[1]} {time[2]}"))
        if time and kind in ("TIMESTAMP", "TIMESTAMP_LTZ") and time[3]:
            zone = "+00:00" if time[3] in ("Z", "UTC") else time[3]
            moment = dt.datetime.fromisoformat(f"{time[1]} {time[2]}{zone}")
            return Literal(moment.astimezone(dt.UTC))
    except (ValueError, OverflowError):
        return None
    return None
