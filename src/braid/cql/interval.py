"""Intervals of a fixed length, in the spellings that Spark has for them, in microseconds.

Months and years have no fixed length; an interval of these is None here, as is any other that
we cannot read, and stays for Spark to judge.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNIT_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_CLOCK = ("DAY", "HOUR", "MINUTE", "SECOND")

_AMOUNT = re.compile(
    r"\s*([+-]?)\s*'?\s*([+-]?)\s*(\d{1,30}(?:\.\d{1,30})?)\s*'?\s*([A-Z]+)\s*"
)
_SPAN = re.compile(r"\s*'\s*([+-]?)\s*([\d :.]{1,60}?)\s*'\s*([A-Z]+) TO ([A-Z]+)\s*")


def interval_us(written: str) -> int | None:
    """The length of what stands after the word INTERVAL.

    >>> interval_us("'-5' SECONDS"), interval_us("'1 minute 30 seconds'")
    (-5000000, 90000000)
    >>> interval_us("'1 02:03:04.5' DAY TO SECOND"), interval_us("3 MONTHS")
    (93784500000, None)
    """
    text = written.upper()
    span = _SPAN.fullmatch(text)
    if span:
        return _span_us(*span.groups())
    inside = re.fullmatch(r"\s*'([^']*[A-Z]\s*)'\s*", text)
    amounts = list(_amounts(inside[1] if inside else text))
    if not amounts or None in amounts:
        return None
    return _whole(sum(amount for amount in amounts if amount is not None))


def _amounts(text: str) -> Iterable[Decimal | None]:
    """The microseconds of each number with its unit; None for what is not one."""
    at = 0
    while at < len(text):
        found = _AMOUNT.match(text, at)
        each = (
            _UNIT_US.get(found[4], _UNIT_US.get(found[4].removesuffix("S"))) if found else None
        )
        if found is None or each is None:
            yield None
            return
        sign = -1 if (found[1] == "-") != (found[2] == "-") else 1
        yield sign * Decimal(found[3]) * each
        at = found.end()


def _span_us(sign: str, clock: str, first: str, last: str) -> int | None:
    """The microseconds of days, hours, minutes and seconds, from one unit to another."""
    if first not in _CLOCK or last not in _CLOCK:
        return None
    units = _CLOCK[_CLOCK.index(first) : _CLOCK.index(last) + 1]
    numbers = re.split(r"[ :]+", clock)
    if len(numbers) != len(units) or not all(re.fullmatch(r"\d+(\.\d+)?", n) for n in numbers):
        return None
    total = sum(Decimal(n) * _UNIT_US[unit] for n, unit in zip(numbers, units, strict=True))
    return _whole(-total if sign == "-" else Decimal(total))


def _whole(amount: Decimal | int) -> int | None:
    return int(amount) if amount == int(amount) else None
