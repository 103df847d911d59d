"""Where each piece of a query stands in its text, so that errors can point at it.

A `Place` is a range of characters; `Words` is the whole query as tokens. What is wrong at a
place is for the other modules to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType

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

SHAPE = "a query is SELECT … FROM stream [RANGE n unit], … WHERE … GROUP BY … HAVING …"
SIMPLER = "compute parts of it in the DataFrame, before the query"
"""Cures for what could not be read at all, and for what is too much."""


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

    def out_of_scope(self, what: str, why: str, *, hint: str | None = None) -> QueryError:
        """The error for what SQL or CQL has and Braid has not: what, and the reason."""
        return self.error(f"{what} is out of scope: {why}", hint=hint)

    def to(self, end: Place) -> Place:
        """From the start of this place to the end of another."""
        return Place(self.text, self.lower, end.upper)


@dataclass(frozen=True, slots=True)
class Words:
    """A query's text and its tokens, in order; only a suffix shares the place of its number."""

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

    def span(self, first: int, last: int) -> Place:
        """The place of the tokens with these numbers and all between."""
        return self.at(self.tokens[first], self.tokens[last])

    def source(self, number: int) -> str:
        """A token as it stands in the text."""
        token = self.tokens[number]
        return self.text[token.start : token.end + 1]
