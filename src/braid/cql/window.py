"""Windows: `[RANGE 10 SECONDS]` after a stream's name, cut out of the tokens and read.

SQL has no such brackets, so sqlglot gets the tokens without them. Which window belongs to which
stream is told by the token before the bracket, and decided in `parse`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType

from braid.cql.place import CLOSERS, OPENERS, Place, Words
from braid.cql.term import Name
from braid.model.duration import LONGEST_US, UNIT_US, unit_us
from braid.model.query import UNBOUNDED_US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.model.errors import QueryError

HOW = "write [RANGE n unit] after the stream's name, such as [RANGE 10 SECONDS]"

_FORMS = (
    "the windows are [RANGE n unit], [RANGE n unit SLIDE n unit], [UNBOUNDED] "
    "and [PARTITION BY column ROWS n]"
)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_MOST_ROWS = 2**31 - 1
_WINDOW_WORDS = frozenset({"NOW", "PARTITION", "RANGE", "ROWS", "SLIDE", "UNBOUNDED"})


@dataclass(frozen=True, slots=True)
class WrittenWindow:
    """One window of the text, and where the token before it ends.

    `default_us` is the slide of one that has none: a unit of its length, as written.
    """

    place: Place
    after: int
    length_us: int = UNBOUNDED_US
    default_us: int | None = None
    slide_us: int | None = None
    slide_place: Place | None = None
    partition: tuple[Name, ...] = ()
    rows: int | None = None


def cut_windows(words: Words) -> tuple[Words, tuple[WrittenWindow, ...]]:
    """Part a query's tokens into those that are SQL and the windows between them."""
    kept: list[Token] = []
    windows: list[WrittenWindow] = []
    at = 0
    for first, last in _brackets(words):
        kept += words.tokens[at:first]
        windows.append(_Reader(words, first, last).window())
        at = last + 1
    return Words(words.text, [*kept, *words.tokens[at:]]), tuple(windows)


def _brackets(words: Words) -> Iterator[tuple[int, int]]:
    """Numbers of the tokens `[` and `]` of every window.

    Those of an array, such as `a.v[0]`, stay; but between FROM and WHERE only ON has arrays.
    """
    clause, depth, end, kinds = TokenType.SELECT, 0, -1, words.kinds()
    for number, kind in enumerate(kinds):
        depth += (kind in OPENERS) - (kind in CLOSERS)
        clause = clause if depth else _clause(clause, kind)
        if kind is not TokenType.L_BRACKET or number < end:
            continue
        inside = [_word(token) for token in words.tokens[number + 1 : number + 3]]
        window = inside[0] in _WINDOW_WORDS and (
            "]" not in inside or inside[0] in ("NOW", "UNBOUNDED")
        )
        if window or clause is TokenType.FROM:
            end = kinds.index(TokenType.R_BRACKET, number)
            yield number, end


def _clause(clause: TokenType, kind: TokenType) -> TokenType:
    """The part of the query that a token outside of brackets leads to."""
    if kind in (TokenType.JOIN, TokenType.FROM):
        return TokenType.FROM
    if kind is TokenType.COMMA and clause is TokenType.ON:
        return TokenType.FROM
    ends = (TokenType.ON, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING)
    return kind if kind in ends or kind is TokenType.SELECT else clause


def _word(token: Token) -> str:
    """The first word of a token, unless in quotes; PARTITION BY is one token, for instance."""
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
        return ""
    return token.text.upper().partition(" ")[0]


@dataclass(slots=True)
class _Reader:
    """Reads the tokens of one window, from its bracket `first` to its bracket `last`."""

    words: Words
    first: int
    last: int
    at: int = field(init=False)

    def __post_init__(self) -> None:
        self.at = self.first + 1

    @property
    def place(self) -> Place:
        return self.words.span(self.first, self.last)

    def window(self) -> WrittenWindow:
        before = self.words.at(self.words.tokens[self.first - 1])
        window = WrittenWindow(self.place, before.upper)
        if self._take("RANGE"):
            window = self._slide(window if self._take("UNBOUNDED") else self._range(window))
        elif self._take("UNBOUNDED"):
            window = self._slide(window)
        elif self._take("PARTITION"):
            window = self._partition(window)
        else:
            raise self._unknown()
        if self.at < self.last:
            rest = self.words.span(self.at, self.last - 1)
            raise rest.error("the window has an end before this", hint=_FORMS)
        return window

    def _take(self, word: str) -> bool:
        found = self.at < self.last and _word(self.words.tokens[self.at]) == word
        self.at += found
        return found

    def _unknown(self) -> QueryError:
        word = _word(self.words.tokens[self.at]) if self.at < self.last else ""
        if word == "NOW":
            return self.place.error("there is no window [NOW]", hint="write [RANGE 0 SECONDS]")
        if word == "ROWS":
            return self.place.error(
                "ROWS needs PARTITION BY: the newest rows of all are on no one worker",
                hint="write [PARTITION BY column ROWS n], with the columns that are joined on",
            )
        return self.place.error("this window is of no known form", hint=_FORMS)

    def _range(self, window: WrittenWindow) -> WrittenWindow:
        length_us, each_us = self._length("a window's length")
        default_us = min(each_us, length_us) or each_us
        return replace(window, length_us=length_us, default_us=default_us)

    def _slide(self, window: WrittenWindow) -> WrittenWindow:
        first = self.at
        if not self._take("SLIDE"):
            return window
        slide_us, _ = self._length("a slide")
        place = self.words.span(first, self.at - 1)
        if not slide_us:
            raise place.error("a slide of nothing never comes to an end", hint=_FORMS)
        return replace(window, slide_us=slide_us, slide_place=place)

    def _length(self, what: str) -> tuple[int, int]:
        """A number and a unit: the microseconds of both together, and of the unit."""
        if self.last - self.at < 2:
            raise self.place.error(f"{what} is a number and a unit", hint=HOW)
        number, unit = self.words.tokens[self.at : self.at + 2]
        place = self.words.at(number)
        if not _NUMBER.fullmatch(self.words.text, place.lower, place.upper):
            raise place.error(f"{what} is a number such as 10 or 0.5", hint=HOW)
        each_us = self._unit_us(unit)
        length = Decimal(number.text) * each_us
        place = self.words.at(number, unit)
        if length > LONGEST_US:
            raise place.error(f"{what} cannot be so long", hint="the longest is 2,000 years")
        if length != int(length):
            raise place.error(
                f"{what} cannot be finer than one microsecond",
                hint="event times are whole microseconds",
            )
        self.at += 2
        return int(length), each_us

    def _unit_us(self, unit: Token) -> int:
        each = unit_us(unit.text)
        if each is None:
            units = ", ".join(f"{name}S" for name in UNIT_US)
            raise self.words.at(unit).error(
                f"unknown unit {unit.text!r}", hint=f"the units are {units}"
            )
        return each

    def _partition(self, window: WrittenWindow) -> WrittenWindow:
        names = [self._column()]
        while self.at < self.last and self.words.tokens[self.at].token_type is TokenType.COMMA:
            self.at += 1
            names.append(self._column())
        if not self._take("ROWS"):
            rest = self.words.span(min(self.at, self.last), self.last)
            raise rest.error("PARTITION BY needs ROWS after its columns", hint=_FORMS)
        return replace(window, partition=tuple(names), rows=self._rows())

    def _column(self) -> Name:
        token = self.words.tokens[self.at]
        named = token.token_type is TokenType.IDENTIFIER or token.text.isidentifier()
        if self.at >= self.last or not named or token.token_type is TokenType.STRING:
            raise self.words.at(token).error("PARTITION BY takes columns' names", hint=_FORMS)
        self.at += 1
        text = token.text if token.token_type is TokenType.IDENTIFIER else self._source(token)
        return Name(text, self.words.at(token))

    def _source(self, token: Token) -> str:
        return self.words.text[token.start : token.end + 1]

    def _rows(self) -> int:
        token = self.words.tokens[self.at]
        digits = self._source(token)
        place = self.words.at(token)
        if self.at >= self.last or not re.fullmatch("[0-9]+", digits):
            raise place.error("ROWS takes a whole number, such as ROWS 10", hint=_FORMS)
        if not digits.strip("0"):
            raise place.error(
                "a window of no rows is always empty", hint="ROWS 1 is the newest"
            )
        if len(digits.lstrip("0")) > 10 or int(digits) > _MOST_ROWS:
            raise place.error("too many rows", hint=f"the most are {_MOST_ROWS:,}")
        self.at += 1
        return int(digits)
