"""Lengths of time, as people write them (`10 SECONDS`) and in microseconds, as we count."""

from __future__ import annotations

import re
from decimal import Decimal

from braid.model.errors import BraidError

UNIT_US = {
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
"""Microseconds in each unit; the plural of each is accepted too."""

LONGEST_US = 2**56
"""Some 2,283 years: longer is a typing error, and sums of two must fit a 64-bit count."""

_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def unit_us(unit: str) -> int | None:
    """Microseconds in a unit, singular or plural, in any case; None for a word that is no unit.

    >>> unit_us("Seconds")
    1000000
    """
    word = unit.upper()
    return UNIT_US.get(word, UNIT_US.get(word.removesuffix("S")))


def parse_duration(text: str) -> int:
    """Read a duration such as `5 seconds` or `1.5 hours` into microseconds.

    >>> parse_duration("5 seconds")
    5000000
    """
    found = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    each = unit_us(found[2]) if found else None
    if found is None or each is None:
        raise BraidError(
            f"cannot read the duration {text!r}",
            hint="write a number and a unit from milliseconds to weeks, such as '5 seconds'",
        )
    length = round(Decimal(found[1]) * each)
    if length > LONGEST_US:
        raise BraidError(
            f"the duration {text!r} is too long", hint="the longest is 2,000 years"
        )
    return length


def format_duration(length_us: int) -> str:
    """Write a duration with the largest unit up to days that divides it.

    >>> format_duration(90_000_000)
    '90 seconds'
    """
    for name, each in sorted(UNIT_US.items(), key=lambda item: -item[1]):
        # A week is seven days: checkpoints know windows by this text.
        if length_us and length_us % each == 0 and name != "WEEK":
            count = length_us // each
            return f"{count} {name.lower()}{'' if count == 1 else 's'}"
    whole, rest = divmod(length_us, 1000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".") + " milliseconds"
