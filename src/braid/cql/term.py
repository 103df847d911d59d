"""Expressions as written: words and signs, with smaller expressions among them.

A `Term` says how an expression is built and where it stands, not what it means. Its `shape`
does for most questions: that of `a.v + upper(b.name)` is `_ + _`, and that of its second
operand `upper ( _ )`. Keywords are in capitals and functions in small letters, however written;
names, strings and numbers are as written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.cql.place import Place


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier, without its quotes."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class ColumnName:
    """`column`, `stream.column`, or a field of either; which it is depends on the streams."""

    parts: tuple[Name, ...]
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Any other expression; `string` is the value of one that is a string in quotes."""

    pieces: tuple[str | Term | ColumnName, ...]
    place: Place
    string: str | None = None

    @property
    def operands(self) -> tuple[Written, ...]:
        """The smaller expressions, in order."""
        return tuple(piece for piece in self.pieces if not isinstance(piece, str))

    @property
    def shape(self) -> str:
        """All pieces with blanks between, and `_` for each operand."""
        return " ".join(piece if isinstance(piece, str) else "_" for piece in self.pieces)


Written = Term | ColumnName


def bare(written: Written) -> Written:
    """An expression without the brackets and plus signs before it."""
    while isinstance(written, Term) and written.shape in ("( _ )", "+ _"):
        written = written.operands[0]
    return written


def shape_of(written: Written) -> str:
    """The shape of an expression without brackets around it; that of a column is `_`."""
    inner = bare(written)
    return inner.shape if isinstance(inner, Term) else "_"


def connective(written: Written) -> str | None:
    """AND or OR, if that is what joins the operands of an expression."""
    if isinstance(written, Term) and len(written.pieces) > 2:
        word = written.pieces[1]
        if word in ("AND", "OR") and not isinstance(written.pieces[0], str):
            return str(word)
    return None


def split(written: Written, word: str) -> list[Written]:
    """The operands of AND or OR, of those that are operands of it in turn, and so on."""
    found: list[Written] = []
    pending = [written]
    while pending:
        inner = bare(pending.pop())
        if isinstance(inner, Term) and connective(inner) == word:
            pending += reversed(inner.operands)
        else:
            found.append(inner)
    return found


def function_call(written: Written) -> tuple[str, tuple[Written, ...]] | None:
    """The name and the arguments, if an expression is `name(argument, …)`."""
    inner = bare(written)
    if not isinstance(inner, Term) or len(inner.pieces) < 3:
        return None
    name, opener, *between, closer = inner.pieces
    if not isinstance(name, str) or not _word(name) or (opener, closer) != ("(", ")"):
        return None
    commas = all(piece == "," for piece in between[1::2])
    arguments = tuple(piece for piece in between[::2] if not isinstance(piece, str))
    if not commas or len(arguments) != (len(between) + 1) // 2:
        return None
    return name, arguments


def _word(piece: str) -> bool:
    return piece.replace("_", "a").isalnum() and piece == piece.lower()


def column_names(written: Written) -> Iterator[ColumnName]:
    """All columns in an expression, in order."""
    pending = [written]
    while pending:
        inner = pending.pop()
        if isinstance(inner, ColumnName):
            yield inner
        else:
            pending += reversed(inner.operands)


def terms(written: Written) -> Iterator[Term]:
    """An expression and all within it, but for columns; the outer before the inner."""
    pending = [written]
    while pending:
        inner = pending.pop()
        if isinstance(inner, Term):
            yield inner
            pending += reversed(inner.operands)
