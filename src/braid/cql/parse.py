"""Query text to `Syntax`: what the language has is read, and everything else refused.

To add to the language, add a node to `syntax`, read it here and take it out of `refuse`. Names
are not looked up (see `bind`), and sqlglot's own errors are translated elsewhere (see `sql`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from braid.cql.refuse import CONDITIONS, VALUES, others, refuse_clauses, refused
from braid.cql.sql import parse_select, tokenize
from braid.cql.syntax import ColumnName, Equality, FromItem, Name, SelectItem, Star, Syntax
from braid.cql.window import HOW, WrittenWindow, cut_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.cql.place import Place, Words

_GLUE = frozenset(
    {
        TokenType.ALIAS,
        TokenType.ALL,
        TokenType.AND,
        TokenType.COMMA,
        TokenType.EQ,
        TokenType.FROM,
        TokenType.L_PAREN,
        TokenType.R_PAREN,
        TokenType.SELECT,
        TokenType.SEMICOLON,
        TokenType.WHERE,
    }
)
"""What stands between names."""

_NAME = re.compile(r"\w+|`.*`|\".*\"", re.DOTALL)

_IN_SELECT = "SELECT takes columns, such as a.k or a.v AS va"
_IN_FROM = "list the streams in FROM with commas, and equate their columns in WHERE"
_IN_WHERE = "WHERE takes equalities of columns joined by AND, such as a.k = b.k AND b.k = c.k"


def parse(text: str) -> Syntax:
    """Read a query; a `QueryError` points at the first thing that is not of the language."""
    words, windows = cut_windows(tokenize(text))
    return _Reader(words, windows).syntax(parse_select(words))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads sqlglot's nodes of one query, whose windows stand apart."""

    words: Words
    windows: tuple[WrittenWindow, ...]

    def syntax(self, select: exp.Select) -> Syntax:
        refuse_clauses(select, self.words)
        streams = self._streams(select)
        items = tuple(self._item(node) for node in select.expressions)
        if not items:
            raise self.words.at(self.words.tokens[0]).error("SELECT has no columns after it")
        where = select.args.get("where")
        equalities = tuple(self._equalities(where.this)) if where else ()
        return self._complete(Syntax(items, streams, equalities))

    def _complete(self, syntax: Syntax) -> Syntax:
        """Check that every token was read: sqlglot skips some, such as a sign before a name."""
        read = {at for place in syntax.places() for at in range(place.lower, place.upper)}
        for token in self.words.tokens:
            if token.token_type not in _GLUE and token.start not in read:
                raise self.words.at(token).error(f"cannot read {token.text!r} here")
        return syntax

    # SELECT

    def _item(self, node: exp.Expr) -> SelectItem:
        inner = node.this if isinstance(node, exp.Alias) else node
        what = self._star(inner) or self._column(inner, _IN_SELECT)
        alias = self._name(node.args["alias"]) if isinstance(node, exp.Alias) else None
        if alias and isinstance(what, Star):
            raise alias.place.error("a star cannot have an alias", hint=_IN_SELECT)
        return SelectItem(what, alias, what.place.to(alias.place) if alias else what.place)

    def _star(self, node: exp.Expr) -> Star | None:
        star = node.this if isinstance(node, exp.Column) else node
        if not isinstance(star, exp.Star):
            return None
        if others(star) or others(node, "this", "table"):
            raise self.words.of(node).unsupported("a star with more than a stream")
        return Star(*self._qualified(node, self.words.of_name(star)))

    def _column(self, node: exp.Expr, hint: str) -> ColumnName:
        node = _bare(node)
        plain = isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)
        if not plain or others(node, "this", "table"):
            raise refused(node, self.words, VALUES, hint=hint)
        column = self._name(node.this)
        stream, place = self._qualified(node, column.place)
        return ColumnName(stream, column, place)

    def _qualified(self, node: exp.Expr, place: Place) -> tuple[Name | None, Place]:
        """The stream that a column or star names, if any, and the place of both."""
        table = node.args.get("table")
        stream = self._name(table) if table else None
        return stream, stream.place.to(place) if stream else place

    def _name(self, node: exp.Expr) -> Name:
        place = self.words.of_name(node)
        if not _NAME.fullmatch(self.words.text, place.lower, place.upper):
            raise place.error("this is not a name", hint="put names with signs in `backticks`")
        return Name(node.name, place)

    # FROM

    def _streams(self, select: exp.Select) -> tuple[FromItem, ...]:
        source = select.args.get("from_")
        if source is None:
            raise self.words.everything().error("the query has no FROM", hint=_IN_FROM)
        tables = [source.this]
        for join in select.args.get("joins") or ():
            self._check_comma(tables[-1], join)
            tables.append(join.this)
        names = [self._stream(table) for table in tables]
        self._check_strays(names)
        if len(names) == 1:
            raise names[0][0].place.error("a join takes two streams or more", hint=_IN_FROM)
        return tuple(FromItem(*pair, self._window_us(*pair)) for pair in names)

    def _check_comma(self, left: exp.Expr, join: exp.Expr) -> None:
        """Refuse words such as LEFT JOIN between two tables."""
        before, after = self.words.core(left), self.words.core(join.this)
        if before is None or after is None:
            raise refused(join.this, self.words, VALUES, hint=_IN_FROM)
        between = self.words.tokens[before[1] + 1 : after[0]]
        if others(join, "this") or any(t.token_type is TokenType.JOIN for t in between):
            words = self.words
            place = words.at(between[0], between[-1]) if between else words.of(join.this)
            raise place.unsupported("JOIN", hint=_IN_FROM)

    def _stream(self, table: exp.Expr) -> tuple[Name, Name | None]:
        """The name of a stream and its alias."""
        if not isinstance(table, exp.Table):
            raise refused(table, self.words, VALUES, hint=_IN_FROM)
        if not isinstance(table.this, exp.Identifier):
            raise refused(table.this, self.words, VALUES, hint=_IN_FROM)
        source, alias = self._name(table.this), table.args.get("alias")
        if table.args.get("db"):
            database = self._name(table.parts[0]).place
            raise database.to(source.place).unsupported("a stream's name with a dot")
        if others(table, "this", "alias") or (alias and others(alias, "this")):
            raise self.words.of(table).unsupported("more than a name and an alias in FROM")
        return source, self._name(alias.this) if alias else None

    def _check_strays(self, names: list[tuple[Name, Name | None]]) -> None:
        """Refuse windows that no stream stands before."""
        ends = {name.place.upper for pair in names for name in pair if name}
        for window in self.windows:
            if window.after not in ends:
                raise window.place.error("no stream stands before this window", hint=HOW)

    def _window_us(self, source: Name, alias: Name | None) -> int:
        """The window right after a stream's name, or right after its alias."""
        ends = {name.place.upper for name in (source, alias) if name}
        found = [window for window in self.windows if window.after in ends]
        if not found:
            raise source.place.error(f"stream {source.text!r} has no window", hint=HOW)
        if len(found) > 1:
            raise found[1].place.error(f"stream {source.text!r} has two windows")
        return found[0].length_us

    # WHERE

    def _equalities(self, where: exp.Expr) -> Iterator[Equality]:
        pending = [where]  # a list, not recursion: a long conjunction is a deep tree
        while pending:
            node = _bare(pending.pop())
            if isinstance(node, exp.And):
                pending += [node.expression, node.this]
            else:
                yield self._equality(node)

    def _equality(self, node: exp.Expr) -> Equality:
        if not isinstance(node, exp.EQ):
            raise refused(node, self.words, CONDITIONS, hint=_IN_WHERE)
        left = self._column(node.this, _IN_WHERE)
        right = self._column(node.expression, _IN_WHERE)
        return Equality(left, right, left.place.to(right.place))


def _bare(node: exp.Expr) -> exp.Expr:
    """A node without parentheses around it; a subquery's are its own."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
