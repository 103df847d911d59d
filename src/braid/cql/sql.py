"""The door to sqlglot: text to tokens, tokens to one SELECT node. Its exceptions end here.

What the node may contain is decided in `parse` and `read_term`; windows, which SQL lacks, are
cut out of the tokens in `window` before sqlglot sees them.
"""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from braid.cql.dialect import Cql, settle_extents
from braid.cql.place import CLOSERS, OPENERS, SHAPE, SIMPLER, Place, Words

if TYPE_CHECKING:
    from braid.model.errors import QueryError

EXAMPLE = "SELECT a.k FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.k = b.k"

_BLANKS = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*", re.DOTALL)

_STATEMENTS = re.compile(
    "ALTER|CREATE|DELETE|DESCRIBE|DROP|EXPLAIN|INSERT|MERGE|SET|SHOW|UPDATE|VALUES|WITH"
)
"""First words that are good SQL, only no query of ours."""

_BETWEEN_LISTS = {
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.JOIN,
    TokenType.ON,
}
_BEFORE_LISTS = {TokenType.SELECT} | _BETWEEN_LISTS | OPENERS.keys()
_AFTER_LISTS = {TokenType.COMMA, TokenType.SEMICOLON} | _BETWEEN_LISTS | CLOSERS

_SETS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}


def tokenize(text: str) -> Words:
    """Split a query into tokens, with brackets that match and something after each comma."""
    words = read_words(text)
    if not words.tokens:
        raise Place(text, 0, 0).error("the query is empty", hint=f"write {EXAMPLE}")
    _check_start(words)
    _check_end(words)
    check_brackets(words)
    _check_commas(words)
    return words


def read_words(text: str) -> Words:
    """Split any text into tokens."""
    tokenizer = Cql().tokenizer()
    try:
        return Words(text, tokenizer.tokenize(text))
    except TokenError as error:
        raise _unfinished(text, tokenizer.tokens) from error


def parse_select(words: Words) -> exp.Select:
    """Let sqlglot parse the tokens; anything but one SELECT is an error."""
    context = len(words.text)  # makes error contexts start at the text's first character
    reader = Cql().parser(error_level=ErrorLevel.IMMEDIATE, error_message_context=context)
    try:
        tree = reader.parse(list(words.tokens), words.text)[0]
    except ParseError as error:
        raise _unexpected(words, error) from error
    except RecursionError as error:
        raise words.everything().error(
            "the query is nested too deeply", hint=SIMPLER
        ) from error
    except Exception as error:  # sqlglot trips over some malformed texts instead of refusing
        raise words.everything().error("cannot read this as a query", hint=SHAPE) from error
    if isinstance(tree, exp.SetOperation):
        raise _refused_set(words)
    if not isinstance(tree, exp.Select):
        raise words.everything().error("this is not a SELECT", hint=f"write {EXAMPLE}")
    settle_extents(tree)
    return tree


def check_brackets(words: Words) -> None:
    """Refuse brackets without their partners."""
    opened: list[Token] = []
    for token in words.tokens:
        if token.token_type in OPENERS:
            opened.append(token)
        elif token.token_type in CLOSERS and (
            not opened or OPENERS[opened.pop().token_type] is not token.token_type
        ):
            raise words.at(token).error(
                f"nothing opens this {token.text!r}", hint="open it before, or leave it out"
            )
    if opened:
        raise words.at(opened[-1]).error(
            f"nothing closes this {opened[-1].text!r}", hint="close it, or leave it out"
        )


def bracket_depth(words: Words) -> int:
    """How many brackets are open at once, at the most."""
    kinds = (token.token_type for token in words.tokens)
    return max(accumulate(((kind in OPENERS) - (kind in CLOSERS) for kind in kinds), initial=0))


def _unfinished(text: str, before: list[Token]) -> QueryError:
    """The error for a string, name or comment that never ends."""
    blanks = _BLANKS.match(text, before[-1].end + 1 if before else 0)
    place = Place(text, blanks.end() if blanks else 0, len(text))
    return place.error(
        "nothing ends the quotation or comment that begins here",
        hint="within quotes, write the quote itself twice",
    )


def _unexpected(words: Words, error: ParseError) -> QueryError:
    """Sqlglot's own error, in our terms and at its place."""
    found = error.errors[0] if error.errors else {}
    lower, highlight = len(found.get("start_context") or ""), found.get("highlight") or ""
    place = Place(words.text, lower, lower + len(highlight))
    surplus = str(found.get("description")).startswith("Invalid expression")
    if place.upper > words.tokens[-1].start and not surplus:
        return place.error(f"the query breaks off after {highlight!r}", hint=SHAPE)
    return place.error(f"cannot read the query from {highlight!r} on", hint=SHAPE)


def _refused_set(words: Words) -> QueryError:
    """The error at the first UNION, EXCEPT or INTERSECT."""
    found = [token for token in words.tokens if token.token_type in _SETS]
    place = words.at(found[0]) if found else words.everything()
    return place.out_of_scope(
        found[0].text.upper() if found else "UNION",
        "a query is one join",
        hint="run two queries, or unite the DataFrames before the query",
    )


def _check_start(words: Words) -> None:
    first = words.tokens[0]
    word = first.text.upper()
    if first.token_type is TokenType.L_PAREN:
        raise words.at(first).error(
            "a query stands without brackets around it", hint="leave them out"
        )
    if _STATEMENTS.fullmatch(word):
        raise words.at(first).error(f"{word} is no query", hint="a query starts with SELECT")
    if first.token_type is not TokenType.SELECT:
        raise words.at(first).error(
            f"a query starts with SELECT, not {first.text!r}", hint=f"write {EXAMPLE}"
        )


def _check_end(words: Words) -> None:
    for end, after in pairwise(words.tokens):
        if end.token_type is TokenType.SEMICOLON:
            raise words.at(after, words.tokens[-1]).error(
                "a query is one statement", hint="run the others as queries of their own"
            )


def _check_commas(words: Words) -> None:
    """Refuse empty places in lists, which sqlglot would skip in silence."""
    kinds = [*words.kinds(), TokenType.SEMICOLON]
    for number, token in enumerate(words.tokens):
        if token.token_type is TokenType.COMMA and kinds[number - 1] in _BEFORE_LISTS:
            raise words.at(token).error("nothing precedes this ','", hint="leave it out")
        if token.token_type is TokenType.COMMA and kinds[number + 1] in _AFTER_LISTS:
            raise words.at(token).error("nothing follows this ','", hint="leave it out")
