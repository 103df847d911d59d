"""Where each piece of a query stands in its text, so that errors can point at it.

A `Place` is a range of characters; `Words` is the whole query as tokens, and finds the place of
any node that sqlglot built from them. What is wrong at a place is for the other modules to say.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType, exp

from braid.model.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence


OPENERS = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE,
}
"""Each opening bracket, with the one that closes it."""

CLOSERS = frozenset(OPENERS.values())

CLAUSE_WORDS = frozenset(
    {
        TokenType.SELECT,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.ORDER_BY,
        TokenType.LIMIT,
    }
)
"""The words that begin a part of a query."""

_FENCES = CLAUSE_WORDS | {
    TokenType.ALIAS,
    TokenType.ALL,
    TokenType.AND,
    TokenType.COMMA,
    TokenType.DISTINCT,
    TokenType.EQ,
    TokenType.OR,
    TokenType.SEMICOLON,
}
"""No expression reaches past these, unless they stand between its own brackets."""


@dataclass(frozen=True, slots=True)
class Place:
    """The half-open range of characters `lower:upper` of a query's text."""

    text: str = field(repr=False)
    lower: int
    upper: int

    def error(self, message: str, *, hint: str | None = None) -> QueryError:
        """An error that points here."""
        return QueryError(
            message, text=self.text, lower=self.lower, upper=self.upper, hint=hint
        )

    def unsupported(self, what: str, *, hint: str | None = None) -> QueryError:
        """The error for what SQL or CQL has and Braid does not, so far."""
        return self.error(f"{what} is not supported yet", hint=hint)

    def to(self, end: Place) -> Place:
        """From the start of this place to the end of another."""
        return Place(self.text, self.lower, end.upper)


@dataclass(frozen=True, slots=True)
class Words:
    """A query's text and its tokens, which are in order and do not overlap."""

    text: str
    tokens: Sequence[Token]

    def kinds(self) -> list[TokenType]:
        """What each token is; after a dot or AS, any word is a name."""
        kinds = [token.token_type for token in self.tokens]
        for number, (before, token) in enumerate(pairwise(self.tokens), 1):
            named = before.token_type in (TokenType.DOT, TokenType.ALIAS)
            if named and token.text.isidentifier():
                kinds[number] = TokenType.VAR
        return kinds

    def everything(self) -> Place:
        """All of the text but the blanks around it."""
        lower = len(self.text) - len(self.text.lstrip())
        return Place(self.text, lower, max(lower, len(self.text.rstrip())))

    def at(self, first: Token, last: Token | None = None) -> Place:
        """The place of one token, or of a run of them."""
        return Place(self.text, first.start, (last or first).end + 1)

    def of_name(self, name: exp.Expr) -> Place:
        """The place of an identifier or a star, which sqlglot marks with all that they are."""
        if "start" not in name.meta:
            return self.of(name)
        return Place(self.text, name.meta["start"], name.meta["end"] + 1)

    def of(self, node: exp.Expr) -> Place:
        """The place of a whole expression, with its brackets and leading words.

        sqlglot marks a node with one of its tokens or with none, never with its extent; so we
        take the marks of all nodes below and reach outward to the next fence on either side.
        Brackets around the marks are the node's own, but for those of `Paren` nodes above it.
        """
        core = self.core(node)
        if core is None:
            return self.everything()
        first, last = core
        opened, closed = self._unmatched(first, last)
        around = self._unmatched(0, first - 1)[0] - closed - _parens_above(node)
        last = self._reach(last, 1, opened + max(0, around))
        first = self._reach(first, -1, closed + max(0, around))
        return self.at(self.tokens[first], self.tokens[last])

    def core(self, node: exp.Expr) -> tuple[int, int] | None:
        """Numbers of the first and last token that a node or one below it is marked with."""
        marks = [n.meta["start"] for n in node.walk() if "start" in n.meta]
        if not marks:
            return None
        starts = [token.start for token in self.tokens]
        return bisect_right(starts, min(marks)) - 1, bisect_right(starts, max(marks)) - 1

    def _unmatched(self, first: int, last: int) -> tuple[int, int]:
        """How many brackets from first to last lack their end, and how many their beginning."""
        opened = closed = 0
        for token in self.tokens[first : last + 1]:
            if token.token_type in OPENERS:
                opened += 1
            elif token.token_type in CLOSERS and opened:
                opened -= 1
            elif token.token_type in CLOSERS:
                closed += 1
        return opened, closed

    def _reach(self, index: int, step: int, pending: int) -> int:
        """Step outward, over `pending` brackets at least, up to the token before a fence."""
        deeper, higher = (OPENERS, CLOSERS) if step > 0 else (CLOSERS, OPENERS)
        while 0 <= index + step < len(self.tokens):
            kind = self.tokens[index + step].token_type
            if not pending and (kind in _FENCES or kind in higher):
                break
            pending += (kind in deeper) - (kind in higher)
            index += step
        return index


def _parens_above(node: exp.Expr) -> int:
    count, above = 0, node.parent
    while above is not None:
        count += isinstance(above, exp.Paren)
        above = above.parent
    return count
