"""Query text to `Syntax`: what the language has is read, and everything else refused.

To add to the language, add a node to `syntax`, read it here and take it out of `refuse`. Names
are not looked up (see `bind`), and sqlglot's own errors are translated elsewhere (see `sql`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from braid.cql.place import SHAPE
from braid.cql.read_term import TermReader, term_reader
from braid.cql.refuse import others, refuse_clauses, refuse_node, refuse_words
from braid.cql.sql import parse_select, tokenize
from braid.cql.syntax import FromItem, SelectItem, Star, Syntax
from braid.cql.window import HOW, WrittenWindow, cut_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.cql.place import Place
    from braid.cql.term import Name, Written
    from braid.model.errors import QueryError

_GLUE = frozenset(
    {
        TokenType.ALIAS,
        TokenType.ALL,
        TokenType.COMMA,
        TokenType.CROSS,
        TokenType.FROM,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.INNER,
        TokenType.JOIN,
        TokenType.L_PAREN,
        TokenType.ON,
        TokenType.R_PAREN,
        TokenType.SELECT,
        TokenType.SEMICOLON,
        TokenType.USING,
        TokenType.WHERE,
    }
)
"""What stands between names and expressions."""

_GROUP_SETS = frozenset(
    {TokenType.ALL, TokenType.CUBE, TokenType.GROUPING_SETS, TokenType.ROLLUP}
)

_IN_FROM = "list the streams in FROM, and equate their columns in WHERE or with JOIN … ON"

_MISSING = "which rows have no partner is known only when their windows have passed"
_JOINS = {
    "LEFT": ("an outer join", _MISSING),
    "RIGHT": ("an outer join", _MISSING),
    "FULL": ("an outer join", _MISSING),
    "OUTER": ("an outer join", _MISSING),
    "SEMI": ("a semi-join", "results are combinations of one row of every stream"),
    "ANTI": ("an anti-join", _MISSING),
    "NATURAL": ("a natural join", "it would join on the event times as well"),
    "ASOF": ("an ASOF join", "the nearest row may still be to come"),
}
"""Words before JOIN: what they ask for, and why there is none."""


def parse(text: str) -> Syntax:
    """Read a query; a `QueryError` points at the first thing that is not of the language."""
    words, windows = cut_windows(tokenize(text))
    refuse_words(words)
    return _Reader(term_reader(words), windows).syntax(parse_select(words))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads sqlglot's nodes of one query, whose windows stand apart."""

    terms: TermReader
    windows: tuple[WrittenWindow, ...]

    def syntax(self, select: exp.Select) -> Syntax:
        words = self.terms.words
        refuse_clauses(select, words)
        streams, conditions = self._streams(select)
        items = tuple(self._item(node) for node in select.expressions)
        if not items:
            raise words.at(words.tokens[0]).error(
                "SELECT has no columns after it", hint="name some, or write SELECT *"
            )
        where, having = select.args.get("where"), select.args.get("having")
        if where:
            conditions.append(self.terms.read(where.this))
        return self._complete(
            Syntax(
                items,
                streams,
                tuple(conditions),
                self._group(select.args.get("group")),
                self.terms.read(having.this) if having else None,
            )
        )

    def _complete(self, syntax: Syntax) -> Syntax:
        """Check that every token was read: sqlglot skips some in silence."""
        read = {at for place in syntax.places() for at in range(place.lower, place.upper)}
        words = self.terms.words
        for token in words.tokens:
            if token.token_type not in _GLUE and token.start not in read:
                raise words.at(token).error(f"cannot read {token.text!r} here", hint=SHAPE)
        return syntax

    # SELECT

    def _item(self, node: exp.Expr) -> SelectItem:
        inner = node.this if isinstance(node, exp.Alias) else node
        what = self._star(inner) or self.terms.read(inner)
        alias = self.terms.name(node.args["alias"]) if isinstance(node, exp.Alias) else None
        if alias and isinstance(what, Star):
            raise alias.place.error(
                "a star cannot have an alias", hint="name the columns one by one"
            )
        return SelectItem(what, alias, what.place.to(alias.place) if alias else what.place)

    def _star(self, node: exp.Expr) -> Star | None:
        star = node.this if isinstance(node, exp.Column) else node
        if not isinstance(star, exp.Star):
            return None
        if others(star) or others(node, "this", "table"):
            raise self.terms.place(node).error(
                "a star stands for all columns of a stream, or of all",
                hint="name the columns one by one",
            )
        table = node.args.get("table")
        return Star(self.terms.name(table) if table else None, self.terms.place(node))

    # FROM

    def _streams(self, select: exp.Select) -> tuple[tuple[FromItem, ...], list[Written]]:
        """The streams, and the conditions of ON."""
        source = select.args.get("from_")
        words = self.terms.words
        if source is None:
            raise words.everything().error("the query has no FROM", hint=_IN_FROM)
        joins = select.args.get("joins") or []
        names = [self._stream(source.this)]
        for join in joins:
            self._check_kind(join)
            names.append(self._stream(join.this))
        self._check_strays(names)
        if len(names) == 1:
            raise names[0][0].place.error("a join takes two streams or more", hint=_IN_FROM)
        using = [(), *(self._using(join) for join in joins)]
        streams = tuple(
            FromItem(*pair, self._window(*pair), columns)
            for pair, columns in zip(names, using, strict=True)
        )
        return streams, list(self._conditions(joins))

    def _conditions(self, joins: list[exp.Join]) -> Iterator[Written]:
        for join in joins:
            on = join.args.get("on")
            if on is not None and self.terms.extent(on):  # sqlglot adds ON TRUE of its own
                yield self.terms.read(on)

    def _using(self, join: exp.Join) -> tuple[Name, ...]:
        return tuple(self.terms.name(name) for name in join.args.get("using") or ())

    def _check_kind(self, join: exp.Join) -> None:
        """Refuse words such as LEFT before JOIN."""
        asked = [str(join.args.get(part) or "") for part in ("kind", "method", "side")]
        found = next((_JOINS[word] for word in asked if word in _JOINS), None)
        if found is not None:
            raise self._join_words(join).out_of_scope(*found, hint="join with JOIN … ON")
        known = others(join, "this", "on", "using", "kind") is False
        if not known or asked[0] not in ("", "CROSS", "INNER"):
            raise self._join_words(join).error("cannot read this as a join", hint=_IN_FROM)

    def _join_words(self, join: exp.Join) -> Place:
        """The words before a stream that say how to join it."""
        found = self.terms.extent(join.this)
        if found is None:
            return self.terms.words.everything()
        first = last = max(0, found[0] - 1)
        tokens = self.terms.words.tokens
        while first and tokens[first - 1].text.upper() in _JOINS:
            first -= 1
        return self.terms.words.span(first, last)

    def _stream(self, table: exp.Expr) -> tuple[Name, Name | None]:
        """The name of a stream and its alias."""
        place = self.terms.place(table)
        refuse_node(table, place)
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise place.out_of_scope(
                "a table made by a function", "a query reads streams alone", hint=_IN_FROM
            )
        source, alias = self.terms.name(table.this), table.args.get("alias")
        if table.args.get("db"):
            database = self.terms.name(table.parts[0]).place
            raise database.to(source.place).error(
                "a stream's name has no dot", hint="put a name with a dot in `backticks`"
            )
        if others(table, "this", "alias") or (alias and others(alias, "this")):
            raise place.error("a stream has a name and an alias, and no more", hint=_IN_FROM)
        return source, self.terms.name(alias.this) if alias else None

    def _check_strays(self, names: list[tuple[Name, Name | None]]) -> None:
        """Refuse windows that no stream stands before."""
        ends = {name.place.upper for pair in names for name in pair if name}
        for window in self.windows:
            if window.after not in ends:
                raise window.place.error("no stream stands before this window", hint=HOW)

    def _window(self, source: Name, alias: Name | None) -> WrittenWindow:
        """The window right after a stream's name, or right after its alias."""
        ends = {name.place.upper for name in (source, alias) if name}
        found = [window for window in self.windows if window.after in ends]
        if not found:
            raise source.place.error(f"stream {source.text!r} has no window", hint=HOW)
        if len(found) > 1:
            raise found[1].place.error(
                f"stream {source.text!r} has two windows", hint="leave one of them out"
            )
        return found[0]

    # GROUP BY

    def _group(self, group: exp.Group | None) -> tuple[Written, ...] | None:
        if group is None:
            return None
        if group.find(exp.Cube, exp.Rollup, exp.GroupingSets) or others(group, "expressions"):
            raise self._refused_group()
        keys = tuple(self.terms.read(node) for node in group.expressions)
        if not keys:
            raise self.terms.place(group).error(
                "GROUP BY has no columns after it", hint="name some, or leave GROUP BY out"
            )
        return keys

    def _refused_group(self) -> QueryError:
        words = self.terms.words
        found = [token for token in words.tokens if token.token_type in _GROUP_SETS]
        place = words.at(found[-1]) if found else words.everything()
        return place.out_of_scope(
            f"GROUP BY with {found[-1].text.upper()}" if found else "such a GROUP BY",
            "a query has one set of groups",
            hint="list the columns of the groups, and run a query for each set",
        )
