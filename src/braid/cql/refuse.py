"""What SQL has and Braid does not, so far: each by the name that people know it by.

When the language grows, an entry leaves these tables and `parse` reads the node instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

if TYPE_CHECKING:
    from braid.cql.place import Words
    from braid.model.errors import QueryError

READ = frozenset({"expressions", "from_", "joins", "where"})
"""The parts of a SELECT node that `parse` reads."""

CLAUSES = {
    "cluster": (TokenType.CLUSTER_BY,),
    "connect": (TokenType.START_WITH, TokenType.CONNECT_BY),
    "distinct": (TokenType.DISTINCT,),
    "distribute": (TokenType.DISTRIBUTE_BY,),
    "group": (TokenType.GROUP_BY,),
    "having": (TokenType.HAVING,),
    "hint": (TokenType.HINT,),
    "into": (TokenType.INTO,),
    "laterals": (TokenType.LATERAL,),
    "limit": (TokenType.LIMIT, TokenType.FETCH),
    "locks": (TokenType.FOR,),
    "offset": (TokenType.OFFSET,),
    "order": (TokenType.ORDER_BY,),
    "qualify": (TokenType.QUALIFY,),
    "sort": (TokenType.SORT_BY,),
    "windows": (TokenType.WINDOW,),
}
"""Other parts of a SELECT node, and the tokens that each may begin with."""

Kinds = tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], str], ...]
"""Kinds of node and their names; the first that fits counts."""

VALUES: Kinds = (
    (exp.Query, "a subquery"),
    (exp.UDTF, "a table made by a function"),
    (exp.Window, "a window function"),
    (exp.AggFunc, "an aggregate"),  # before functions: sqlglot makes it one of them
    ((exp.Binary, exp.Case, exp.Cast), "an expression"),  # likewise
    (exp.Func, "a function"),
    ((exp.Literal, exp.Null, exp.Boolean), "a literal"),
    ((exp.Column, exp.Dot), "a field of a column"),  # plain columns never get here
    (exp.Expr, "an expression"),
)
"""What may stand for a column in SQL."""

CONDITIONS: Kinds = (
    ((exp.Query, exp.Exists), "a subquery"),
    (exp.Or, "OR"),
    (exp.Not, "NOT"),
    (exp.Expr, "a condition other than '='"),
)
"""What may stand for an equality in SQL."""


def refuse_clauses(select: exp.Select, words: Words) -> None:
    """Raise if a SELECT node has a part that `parse` would overlook."""
    parts = [part for part, node in select.args.items() if node and part not in READ]
    kinds = {kind for part in parts for kind in CLAUSES.get(part, ())}
    for token, kind in zip(words.tokens, words.kinds(), strict=True):
        if kind in kinds:
            name = "a hint" if kind is TokenType.HINT else token.text.upper()
            raise words.at(token).unsupported(name)
    if parts:
        raise words.everything().unsupported(parts[0].strip("_").upper())


def refused(node: exp.Expr, words: Words, kinds: Kinds, *, hint: str) -> QueryError:
    """The error for a node that stands where only simpler ones may."""
    name = next(name for types, name in kinds if isinstance(node, types))
    return words.of(node).unsupported(name, hint=hint)


def others(node: exp.Expr, *read: str) -> bool:
    """Whether a node has parts besides those named."""
    return any(value for part, value in node.args.items() if part not in read)
