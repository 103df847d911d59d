"""Expressions over one stream as text: for Catalyst to compute, and as people would write them.

The text is that of the query, token by token, with names looked up; what it means is Spark's
to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.cql.quote import quoted, spelled
from braid.cql.term import (
    ColumnName,
    Term,
    Written,
    bare,
    column_names,
    connective,
    function_call,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from braid.cql.scope import Found, Scope
    from braid.model.expression import Column

    Spell = Callable[[Found], str]

_NO_BLANK_AFTER = frozenset("([.~") | {"::"}
_NO_BLANK_BEFORE = frozenset(")],.[") | {"::"}
_SIGN = frozenset("+-")
_NO_OPERAND = re.compile(
    r"|.*\W(?<![`'\")\]])|AND|BETWEEN|CASE|DIV|ELSE|IN|LIKE|NOT|OR|THEN|WHEN"
)
_TIGHT = frozenset("[.") | {"::"}


@dataclass(frozen=True, slots=True)
class Snippet:
    """An expression that needs the columns of one stream, or of none.

    `sql` names them in backticks and without the stream; `text` is a query's. `atomic` means
    that it needs no brackets beside an operator; `column` is set if it is nothing but a column.
    """

    stream: int
    sql: str
    text: str
    atomic: bool
    needs: frozenset[str]  # the columns within
    column: str | None = None

    def bracketed(self) -> tuple[str, str]:
        """Both texts, fit to stand beside an operator."""
        return (self.sql, self.text) if self.atomic else (f"({self.sql})", f"({self.text})")


def snippet(scope: Scope, written: Written, stream: int) -> Snippet:
    """An expression over one stream as text."""
    inner = bare(written)
    sql = _text(inner, scope, _unqualified)
    column = None
    if isinstance(inner, ColumnName) and not scope.column(inner).fields:
        column = scope.column(inner).column
    needs = frozenset(scope.column(name).column for name in column_names(inner))
    return Snippet(stream, sql, query_text(scope, inner), is_atomic(inner), needs, column)


def own_column(scope: Scope, column: Column) -> Snippet:
    """A stream's own column as text."""
    name = column.column
    text = f"{spelled(scope.aliases[column.stream])}.{spelled(name)}"
    return Snippet(column.stream, quoted(name), text, True, frozenset([name]), name)


def query_text(scope: Scope, written: Written) -> str:
    """An expression in its normal spelling, with columns named as `stream.column`."""

    def qualified(found: Found) -> str:
        parts = (scope.aliases[found.stream], found.column, *found.fields)
        return ".".join(spelled(part) for part in parts)

    return _text(bare(written), scope, qualified)


def joined(snippets: list[Snippet], word: str) -> Snippet:
    """Several conditions on one stream as one, with AND or OR between."""
    if len(snippets) == 1:
        return snippets[0]
    sql = f" {word} ".join(each.sql for each in snippets)
    text = f" {word} ".join(each.text for each in snippets)
    needs = frozenset(column for each in snippets for column in each.needs)
    return Snippet(snippets[0].stream, sql, text, False, needs)


def operand(scope: Scope, written: Written, stream: int) -> Snippet:
    """An expression over one stream, with brackets if it is AND or OR itself."""
    made = snippet(scope, written, stream)
    if connective(bare(written)) is None:
        return made
    return Snippet(stream, f"({made.sql})", f"({made.text})", True, made.needs)


def is_atomic(written: Written) -> bool:
    """Whether an expression needs no brackets beside an operator."""
    if isinstance(written, ColumnName):
        return True
    first, last = written.pieces[0], written.pieces[-1]
    if not isinstance(first, str):
        return len(written.pieces) > 1 and written.pieces[1] in _TIGHT
    typed = isinstance(last, Term) and last.string is not None and first.isalpha()
    return (isinstance(last, str) and first not in _SIGN) or (typed and first != "NOT")


def _unqualified(found: Found) -> str:
    return ".".join(quoted(part) for part in (found.column, *found.fields))


def _text(written: Written, scope: Scope, spell: Spell) -> str:
    return _spaced(_lexemes(written, scope, spell, None))


def _lexemes(written: Written, scope: Scope, spell: Spell, above: Term | None) -> Iterable[str]:
    """The text of an expression in parts; brackets that say nothing are left out."""
    if isinstance(written, ColumnName):
        yield spell(scope.column(written))
        return
    inner = bare(written)
    if inner is not written and _needless(inner, above):
        yield from _lexemes(inner, scope, spell, above)
        return
    for piece in written.pieces:
        if isinstance(piece, str):
            yield piece
        else:
            yield from _lexemes(piece, scope, spell, written)


def _needless(inner: Written, above: Term | None) -> bool:
    """Whether an expression needs no brackets within the one above it."""
    if above is not None and (above.pieces[0] == "INTERVAL" or "." in above.pieces[1:2]):
        return False  # there they change what is read
    if above is None or is_atomic(inner):
        return True
    if function_call(above) is not None:
        return True
    return connective(above) is not None and connective(inner) is None


def _spaced(lexemes: Iterable[str]) -> str:
    """Parts with blanks between, as people set them."""
    text, last, sign = "", "", False
    for lexeme in lexemes:
        call = lexeme == "(" and (last.islower() or last.startswith("`")) and last != ""
        tight = last in _NO_BLANK_AFTER or lexeme in _NO_BLANK_BEFORE or call
        if sign and lexeme not in _SIGN:
            tight = True
        text += lexeme if tight or not text else f" {lexeme}"
        sign = lexeme in _SIGN and _NO_OPERAND.fullmatch(last) is not None
        last = lexeme
    return text
