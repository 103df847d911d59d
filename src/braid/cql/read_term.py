"""A node of sqlglot to a `Term`: its tokens, with a term of its own for each node below it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from braid.cql.dialect import extent
from braid.cql.functions import refuse_function, takes_unit
from braid.cql.place import CLOSERS, OPENERS, SHAPE, SIMPLER, Place, Words
from braid.cql.quote import quoted, spelled
from braid.cql.refuse import refuse_node
from braid.cql.term import ColumnName, Name, Term, Written

if TYPE_CHECKING:
    from collections.abc import Sequence

DEEPEST, LONGEST = 40, 100
"""Levels of nesting, and of those in which sums such as `x + y + z` count for their length.

Whatever works on expressions takes some of Python's frames for each level.
"""

_PREDICATES = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Between,
    exp.Escape,
    exp.ILike,
    exp.In,
    exp.Is,
    exp.Like,
    exp.RegexpLike,
)

_STRINGS = {TokenType.STRING, TokenType.RAW_STRING}
_VERBATIM = _STRINGS | {TokenType.HEX_STRING, TokenType.BIT_STRING}
_NO_FUNCTIONS = {
    TokenType.ALIAS,
    TokenType.AND,
    TokenType.BETWEEN,
    TokenType.CASE,
    TokenType.DIV,
    TokenType.ELSE,
    TokenType.ESCAPE,
    TokenType.FOR,
    TokenType.FROM,
    TokenType.ILIKE,
    TokenType.IN,
    TokenType.INTERVAL,
    TokenType.IS,
    TokenType.LIKE,
    TokenType.NOT,
    TokenType.OR,
    TokenType.RLIKE,
    TokenType.THEN,
    TokenType.WHEN,
}
"""Words that may stand before a bracket."""

_KEYWORD = re.compile(
    "BOTH|LEADING|TRAILING|PLACING|TO|(MICRO|MILLI)?SECONDS?|MINUTES?|HOURS?|DAYS?|WEEKS?"
    "|MONTHS?|QUARTERS?|YEARS?",
    re.IGNORECASE,
)
"""Words of expressions that sqlglot has no kind of token for."""

_ONE_SPELLING = {TokenType.EQ: "=", TokenType.NEQ: "<>", TokenType.NOT: "NOT"}

_SIMPLY = "write it in a simpler way, such as f(x, y)"

Extent = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TermReader:
    """Reads the expressions of one query."""

    words: Words
    depths: Sequence[int]  # brackets that are open before each token, and after the last

    def read(self, node: exp.Expr) -> Written:
        """One expression, with all its brackets."""
        return self._read(node, frozenset(), (0, 0))

    def place(self, node: exp.Expr) -> Place:
        """Where a node stands; all of the query, if sqlglot made it up."""
        found = self.extent(node)
        return self.words.span(*found) if found else self.words.everything()

    def extent(self, node: exp.Expr) -> Extent | None:
        """Numbers of a node's first and last token."""
        found = extent(node)
        if found is None:
            return None
        first, last = found
        while self.depths[last + 1] > self.depths[first]:  # sqlglot leaves some brackets out
            last += 1
        return first, last

    def name(self, node: exp.Expr) -> Name:
        """An identifier."""
        place = self.place(node)
        source = self.words.text[place.lower : place.upper]
        if not (source.isidentifier() or source[:1] in ("`", '"')):
            raise place.error("this is not a name", hint="put names with signs in `backticks`")
        return Name(node.name, place)

    def _read(
        self, node: exp.Expr, variables: frozenset[str], depth: tuple[int, int]
    ) -> Written:
        """An expression that stands within those of lambdas with the given variables."""
        if depth[0] > DEEPEST or depth[1] > LONGEST:
            raise self.place(node).error("the expression is nested too deeply", hint=SIMPLER)
        self._refuse(node)
        if isinstance(node, exp.Column):
            return self._column(node, variables)
        if isinstance(node, exp.Lambda):
            variables |= {variable.name.lower() for variable in node.expressions}
        children = self._children(node)
        if len(children) == 1 and self.extent(children[0]) == self.extent(node):
            return self._read(children[0], variables, depth)  # of sqlglot's own making
        inner: dict[Extent, str | Written] = {}
        for child in children:
            if isinstance(child, exp.Identifier):
                inner[self._known(child)] = spelled(child.name)
            else:
                nested = not isinstance(node, exp.Binary) or child is not node.this
                deeper = (depth[0] + nested, depth[1] + 1)
                inner[self._known(child)] = self._read(child, variables, deeper)
        return self._assemble(node, inner)

    def _known(self, node: exp.Expr) -> Extent:
        found = self.extent(node)
        if found is None:
            raise self.words.everything().error("cannot read this as a query", hint=SHAPE)
        return found

    def _refuse(self, node: exp.Expr) -> None:
        above = node.parent
        partial = isinstance(node, exp.Distinct) or isinstance(above, exp.In)
        refuse_node(node, self.place(above if above and partial else node))
        if isinstance(node, exp.Dot) and isinstance(node.this, exp.Literal):
            raise self.place(node).error("a constant has no fields", hint="leave out the dot")
        if isinstance(node, exp.Anonymous):
            refuse_function(node.name.lower(), len(node.expressions), self.place(node))
        if not isinstance(node, _PREDICATES):
            return
        operands = [node.this] if isinstance(node, exp.In) else node.iter_expressions()
        for child in operands:
            inner = self._unwrapped(child)
            if isinstance(inner, (*_PREDICATES, exp.Not)) and not isinstance(node, exp.Escape):
                raise self.place(inner).error(
                    "one comparison stands within another",
                    hint="put brackets around the inner one",
                )

    def _unwrapped(self, node: exp.Expr) -> exp.Expr:
        """A node without brackets that only sqlglot sees around it."""
        inner = node.args.get("this")
        if not isinstance(node, exp.Paren) or not isinstance(inner, exp.Expr):
            return node
        return inner if self.extent(node) == self.extent(inner) else node

    def _column(self, node: exp.Column, variables: frozenset[str]) -> Written:
        place = self.place(node)
        parts = tuple(self.name(part) for part in node.parts)
        if parts[0].text.lower() in variables:
            return Term((".".join(spelled(part.text) for part in parts),), place)
        return ColumnName(parts, place)

    def _children(self, node: exp.Expr) -> list[exp.Expr]:
        """The nodes right below one that stand in the text as expressions or names."""
        if self._is_literal(node):
            return []
        if isinstance(node, exp.And | exp.Or):
            return _flat(node)
        found: list[exp.Expr] = []
        for child in node.iter_expressions():
            if isinstance(node, exp.Case) and child.arg_key == "ifs":
                found += child.iter_expressions()
            elif isinstance(node, exp.Is) and child is node.expression:
                continue  # the word NULL, TRUE or FALSE
            elif not isinstance(child, exp.Var | exp.DataType | exp.IntervalSpan):
                found.append(child)
        if isinstance(node, exp.Anonymous) and takes_unit(node.name.lower(), len(found)):
            found = found[1:]
        there = [child for child in found if self.extent(child)]
        return sorted(there, key=self._known)

    def _is_literal(self, node: exp.Expr) -> bool:
        """Whether the nodes below one are its words: 5L, or INTERVAL 1 MINUTE 30 SECONDS."""
        first, last = self._known(node)
        tokens = self.words.tokens[first : last + 1]
        if isinstance(node, exp.Cast):
            return len(tokens) > 1 and tokens[0].start == tokens[-1].start
        kinds = [token.token_type for token in tokens]
        if kinds[0] is not TokenType.INTERVAL or kinds.count(TokenType.INTERVAL) > 1:
            return False
        words = all(
            kind in (TokenType.STRING, TokenType.NUMBER, TokenType.DASH) or token.text.isalpha()
            for kind, token in zip(kinds, tokens, strict=True)
            if token is not tokens[1] or kind is not TokenType.PLUS
        )
        return words and isinstance(node, exp.Interval | exp.Add) and not _columns(node)

    def _assemble(self, node: exp.Expr, inner: dict[Extent, str | Written]) -> Term:
        """The tokens of a node, with what was read below it in place of its tokens."""
        at, last = self._known(node)
        place = self.words.span(at, last)
        alone = self.words.tokens[at] if at == last else None
        pieces: list[str | Written] = []
        for (lower, upper), piece in inner.items():
            if lower < at:
                raise place.error("cannot read this expression", hint=_SIMPLY)
            pieces += self._lexemes(at, lower - 1)
            pieces.append(piece)
            at = upper + 1
        pieces += self._lexemes(at, last)
        if "." in pieces and not isinstance(node, exp.Dot):
            raise place.error("cannot read this expression", hint=_SIMPLY)  # a column is lost
        string = alone.text if alone and alone.token_type in _STRINGS else None
        return Term(tuple(pieces), place, string)

    def _lexemes(self, first: int, last: int) -> list[str]:
        starts = {self.words.tokens[first - 1].start} if first else set()
        found: list[str] = []
        for number in range(first, last + 1):
            start = self.words.tokens[number].start
            if start not in starts:  # a number and its suffix are one, as written
                found.append(self._lexeme(number))
            starts.add(start)
        return ["".join(found)] if len(found) == 2 and found[0] == "." else found

    def _lexeme(self, number: int) -> str:
        """One token in its only spelling."""
        token = self.words.tokens[number]
        kind = token.token_type
        if kind in _ONE_SPELLING:
            return _ONE_SPELLING[kind]
        if kind is TokenType.IDENTIFIER:
            return quoted(token.text)
        if kind in _VERBATIM:
            return self.words.source(number)
        after = self.words.tokens[number + 1 : number + 2]
        called = bool(after) and after[0].token_type is TokenType.L_PAREN
        source = " ".join(self.words.source(number).split())
        if called and kind not in _NO_FUNCTIONS:
            return source.lower()
        named = bool(after) and after[0].token_type in (TokenType.FARROW, TokenType.COLON)
        plain = kind is TokenType.VAR and not _KEYWORD.fullmatch(source)
        return source if named or plain else source.upper()


def term_reader(words: Words) -> TermReader:
    """A reader for the expressions of a query whose brackets match."""
    kinds = (token.token_type for token in words.tokens)
    steps = ((kind in OPENERS) - (kind in CLOSERS) for kind in kinds)
    return TermReader(words, list(accumulate(steps, initial=0)))


def _flat(node: exp.Expr) -> list[exp.Expr]:
    """The operands of `x AND y AND z`, which sqlglot nests."""
    kind, right = type(node), []
    while type(node) is kind:
        right.append(node.expression)
        node = node.this
    return [node, *reversed(right)]


def _columns(node: exp.Expr) -> bool:
    return node.find(exp.Column) is not None
