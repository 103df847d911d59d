"""Windows: `[RANGE 10 SECONDS]` after a stream's name, cut out of the tokens and read.

SQL has no such brackets, so sqlglot gets the tokens without them. Which window belongs to which
stream is told by the token before the bracket, and decided in `parse`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType

from braid.cql.place import CLAUSE_WORDS, Place, Words
from braid.model.duration import LONGEST_US, UNIT_US, unit_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HOW = "write [RANGE n unit] after the stream's name, such as [RANGE 10 SECONDS]"

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")

_NOT_YET = frozenset({"NOW", "PARTITION", "ROWS", "SLIDE", "UNBOUNDED"})
"""CQL has these windows too."""

_WINDOW_WORDS = _NOT_YET | {"RANGE"}


@dataclass(frozen=True, slots=True)
class WrittenWindow:
    """One window of the text, and where the token before it ends."""

    length_us: int
    place: Place
    after: int


def cut_windows(words: Words) -> tuple[Words, tuple[WrittenWindow, ...]]:
    """Part a query's tokens into those that are SQL and the windows between them."""
    kept: list[Token] = []
    windows: list[WrittenWindow] = []
    at = 0
    for first, last in _brackets(words):
        kept += words.tokens[at:first]
        windows.append(_read(words, first, last))
        at = last + 1
    return Words(words.text, [*kept, *words.tokens[at:]]), tuple(windows)


def _brackets(words: Words) -> Iterator[tuple[int, int]]:
    """Numbers of the tokens `[` and `]` of every window.

    Those of an array, such as `a.v[0]`, stay; but FROM has no place for an array.
    """
    clause, end, kinds = TokenType.SELECT, -1, words.kinds()
    for number, kind in enumerate(kinds):
        if kind in CLAUSE_WORDS:
            clause = kind
        if kind is not TokenType.L_BRACKET or number < end:
            continue
        if clause is TokenType.FROM or _word(words.tokens[number + 1]) in _WINDOW_WORDS:
            end = kinds.index(TokenType.R_BRACKET, number)
            yield number, end


def _word(token: Token) -> str:
    """The first word of a token; PARTITION BY is one token, for instance."""
    return token.text.upper().partition(" ")[0]


def _read(words: Words, first: int, last: int) -> WrittenWindow:
    place = words.at(words.tokens[first], words.tokens[last])
    inside = words.tokens[first + 1 : last]
    for token in inside:
        if _word(token) in _NOT_YET:
            raise words.at(token).unsupported(f"{_word(token)} in a window", hint=HOW)
    if not inside or _word(inside[0]) != "RANGE":
        raise place.error("this window is not of the form [RANGE n unit]", hint=HOW)
    before = words.at(words.tokens[first - 1])
    return WrittenWindow(_length_us(words, inside, place), place, before.upper)


def _length_us(words: Words, inside: Sequence[Token], place: Place) -> int:
    """The length after the word RANGE, in microseconds."""
    if len(inside) < 3:
        raise place.error("a window's length is a number and a unit", hint=HOW)
    number, unit, *more = inside[1:]
    length = _count(words, number) * _unit_us(words, unit)
    if more:
        raise words.at(more[0], more[-1]).error("the window ends after its unit", hint=HOW)
    if length > LONGEST_US:
        raise place.error("the window is too long", hint="the longest is 2,000 years")
    if length != int(length):
        raise place.error("the window is finer than one microsecond")
    return int(length)


def _count(words: Words, number: Token) -> Decimal:
    place = words.at(number)
    if not _NUMBER.fullmatch(words.text, place.lower, place.upper):
        raise place.error("a window's length is a number such as 10 or 0.5", hint=HOW)
    return Decimal(number.text)


def _unit_us(words: Words, unit: Token) -> int:
    each = unit_us(unit.text)
    if each is None:
        units = ", ".join(f"{name}S" for name in UNIT_US)
        raise words.at(unit).error(f"unknown unit {unit.text!r}", hint=f"the units are {units}")
    return each
