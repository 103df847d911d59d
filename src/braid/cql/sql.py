"""The door to sqlglot: text to tokens, tokens to one SELECT node. Its exceptions end here.

What the node may contain is decided in `parse`; windows, which SQL lacks, are cut out of the
tokens in `window` before sqlglot sees them.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, TypeVar

from sqlglot import Dialect, Token, TokenType, exp, parser, tokens
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from braid.cql.place import CLOSERS, OPENERS, Place, Words

if TYPE_CHECKING:
    from braid.model.errors import QueryError

EXAMPLE = "SELECT a.k FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.k = b.k"

_BLANKS = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*", re.DOTALL)

_STATEMENTS = re.compile(
    "ALTER|CREATE|DELETE|DESCRIBE|DROP|EXPLAIN|INSERT|MERGE|SET|SHOW|UPDATE|VALUES|WITH"
)
"""First words that are good SQL, only not (yet) a query of ours."""

_BEFORE_LISTS = {TokenType.SELECT, TokenType.FROM, TokenType.WHERE} | OPENERS.keys()
_AFTER_LISTS = {TokenType.COMMA, TokenType.FROM, TokenType.WHERE, TokenType.SEMICOLON} | CLOSERS

_Node = TypeVar("_Node", bound=exp.Expr)


class Cql(Dialect):
    """Standard SQL, with names quoted as standard SQL does or as Spark does."""

    class Tokenizer(tokens.Tokenizer):
        """Takes both "name" and `name`; the quote itself is written twice inside."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        IDENTIFIER_ESCAPES: ClassVar[list[str]] = []

    class Parser(parser.Parser):
        """Marks every node with a token of its own, where sqlglot marks but a few."""

        def expression(
            self, instance: _Node, token: Token | None = None, comments: list[str] | None = None
        ) -> _Node:
            """Finish a node; the token just read is its last, or within it at least."""
            return super().expression(instance, token or self._prev, comments)


def tokenize(text: str) -> Words:
    """Split a query into tokens, with brackets that match and something after each comma."""
    tokenizer = Cql().tokenizer()
    try:
        words = Words(text, tokenizer.tokenize(text))
    except TokenError as error:
        raise _unfinished(text, tokenizer.tokens) from error
    if not words.tokens:
        raise Place(text, 0, 0).error("the query is empty", hint=f"write {EXAMPLE}")
    _check_start(words)
    _check_end(words)
    _check_brackets(words)
    _check_commas(words)
    return words


def parse_select(words: Words) -> exp.Select:
    """Let sqlglot parse the tokens; anything but one SELECT is an error."""
    context = len(words.text)  # makes error contexts start at the text's first character
    reader = Cql().parser(error_level=ErrorLevel.IMMEDIATE, error_message_context=context)
    try:
        tree = reader.parse(list(words.tokens), words.text)[0]
    except ParseError as error:
        raise _unexpected(words, error) from error
    except RecursionError as error:
        raise words.everything().error("the query is nested too deeply") from error
    except Exception as error:  # sqlglot trips over some malformed texts instead of refusing
        raise words.everything().error("cannot read this as a query") from error
    if isinstance(tree, exp.SetOperation):
        raise _set_word(words, tree).unsupported(tree.key.upper())
    if not isinstance(tree, exp.Select):
        raise words.everything().unsupported("a statement that is not a SELECT")
    return tree


def _unfinished(text: str, before: list[Token]) -> QueryError:
    """The error for a string, name or comment that never ends."""
    blanks = _BLANKS.match(text, before[-1].end + 1 if before else 0)
    place = Place(text, blanks.end() if blanks else 0, len(text))
    return place.error("nothing ends the quotation or comment that begins here")


def _unexpected(words: Words, error: ParseError) -> QueryError:
    """Sqlglot's own error, in our terms and at its place."""
    found = error.errors[0] if error.errors else {}
    lower, highlight = len(found.get("start_context") or ""), found.get("highlight") or ""
    place = Place(words.text, lower, lower + len(highlight))
    surplus = str(found.get("description")).startswith("Invalid expression")
    if place.upper > words.tokens[-1].start and not surplus:
        return place.error(f"the query breaks off after {highlight!r}")
    return place.error(f"cannot read the query from {highlight!r} on")


def _set_word(words: Words, union: exp.SetOperation) -> Place:
    """The place of the first UNION, EXCEPT or INTERSECT."""
    kinds = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
    found = [token for token in words.tokens if token.token_type in kinds]
    return words.at(found[0]) if found else words.of(union)


def _check_start(words: Words) -> None:
    first = words.tokens[0]
    word = first.text.upper()
    if first.token_type is TokenType.L_PAREN:
        raise words.at(first).unsupported("a query in parentheses")
    if _STATEMENTS.fullmatch(word):
        raise words.at(first).unsupported(word, hint="a query starts with SELECT")
    if first.token_type is not TokenType.SELECT:
        raise words.at(first).error(f"a query starts with SELECT, not {first.text!r}")


def _check_end(words: Words) -> None:
    for end, after in pairwise(words.tokens):
        if end.token_type is TokenType.SEMICOLON:
            raise words.at(after, words.tokens[-1]).unsupported("more than one statement")


def _check_brackets(words: Words) -> None:
    opened: list[Token] = []
    for token in words.tokens:
        if token.token_type in OPENERS:
            opened.append(token)
        elif token.token_type in CLOSERS and (
            not opened or OPENERS[opened.pop().token_type] is not token.token_type
        ):
            raise words.at(token).error(f"nothing opens this {token.text!r}")
    if opened:
        raise words.at(opened[-1]).error(f"nothing closes this {opened[-1].text!r}")


def _check_commas(words: Words) -> None:
    """Refuse empty places in lists, which sqlglot would skip in silence."""
    kinds = [*words.kinds(), TokenType.SEMICOLON]
    for number, token in enumerate(words.tokens):
        if token.token_type is TokenType.COMMA and kinds[number - 1] in _BEFORE_LISTS:
            raise words.at(token).error("nothing precedes this ','")
        if token.token_type is TokenType.COMMA and kinds[number + 1] in _AFTER_LISTS:
            raise words.at(token).error("nothing follows this ','")
