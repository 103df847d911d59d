"""What SQL has and Braid has not: each by the name that people know it by, with the reason.

When the language grows, an entry leaves these tables and `parse` or `read_term` reads the node.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from braid.cql.functions import refuse_function, refused_over
from braid.cql.place import SHAPE

if TYPE_CHECKING:
    from braid.cql.place import Place, Words

READ = frozenset({"expressions", "from_", "joins", "where", "group", "having"})
"""The parts of a SELECT node that `parse` reads."""

_NO_ORDER = "results leave as soon as they are there"
_SORT_LATER = "sort or cut the results where you read them"
_FOR_EVER = "a continuous result would have to remember every row for ever"
_GROUP_INSTEAD = "GROUP BY the columns: one row per group at every slide"
_BEFORE = "do it in the DataFrame, before the query"

CLAUSES = {
    "cluster": ((TokenType.CLUSTER_BY,), _NO_ORDER, _SORT_LATER),
    "connect": ((TokenType.START_WITH, TokenType.CONNECT_BY), "streams are no trees", _BEFORE),
    "distinct": ((TokenType.DISTINCT,), _FOR_EVER, _GROUP_INSTEAD),
    "distribute": ((TokenType.DISTRIBUTE_BY,), _NO_ORDER, _SORT_LATER),
    "hint": ((TokenType.HINT,), "the engine plans while it runs", "leave it out"),
    "into": ((TokenType.INTO,), "a query says what comes out, not where to", "choose a sink"),
    "laterals": ((TokenType.LATERAL,), "a stream has one row per row", _BEFORE),
    "limit": ((TokenType.LIMIT, TokenType.FETCH), "the query never ends", _SORT_LATER),
    "locks": ((TokenType.FOR,), "streams are only read", "leave it out"),
    "offset": ((TokenType.OFFSET,), "the query never ends", _SORT_LATER),
    "order": ((TokenType.ORDER_BY,), _NO_ORDER, _SORT_LATER),
    "qualify": ((TokenType.QUALIFY,), "there are no window functions", "use HAVING"),
    "sample": ((TokenType.TABLE_SAMPLE, TokenType.USING), "results are exact", _BEFORE),
    "sort": ((TokenType.SORT_BY,), _NO_ORDER, _SORT_LATER),
    "windows": ((TokenType.WINDOW,), "windows belong to streams", "write a [RANGE 1 MINUTE]"),
}
"""Other parts of a SELECT node: the tokens that each may begin with, the reason, the cure."""

_NODES: tuple[tuple[tuple[type[exp.Expr], ...], str, str, str], ...] = (
    (
        (exp.Query, exp.Exists),
        "a subquery",
        "a query reads streams alone",
        "compute it in a DataFrame of its own, and give that as a stream",
    ),
    (
        (exp.Filter,),
        "FILTER",
        "CASE says the same",
        "write sum(CASE WHEN … THEN x END)",
    ),
    (
        (exp.Distinct,),
        "DISTINCT in an aggregate",
        "a group would have to remember all its values",
        "GROUP BY the value as well, and count the groups where you read them",
    ),
    (
        (exp.WithinGroup, exp.Order, exp.Ordered, exp.Limit, exp.HavingMax),
        "an order within a function",
        "the rows of a group have none",
        "use min or max",
    ),
    (
        (exp.IgnoreNulls, exp.RespectNulls),
        "IGNORE NULLS or RESPECT NULLS",
        "no function here asks for it",
        "leave it out",
    ),
    (
        (exp.Placeholder, exp.Parameter, exp.SessionParameter),
        "a parameter",
        "a query is complete as it stands",
        "write the value itself",
    ),
)
"""Kinds of node that no expression may have: name, reason, cure."""


def refuse_words(words: Words) -> None:
    """Raise for what sqlglot would not read at all: Spark's function `window`."""
    for token, after in pairwise(words.tokens):
        if token.token_type is TokenType.WINDOW and after.token_type is TokenType.L_PAREN:
            refuse_function("window", 0, words.at(token))


def refuse_clauses(select: exp.Select, words: Words) -> None:
    """Raise if a SELECT node has a part that `parse` would overlook."""
    parts = [part for part, node in select.args.items() if node and part not in READ]
    known = {
        kind: CLAUSES[part] for part in parts if part in CLAUSES for kind in CLAUSES[part][0]
    }
    for token, kind in zip(words.tokens, words.kinds(), strict=True):
        if kind in known:
            name = "a hint" if kind is TokenType.HINT else token.text.upper()
            _, why, hint = known[kind]
            raise words.at(token).out_of_scope(name, why, hint=hint)
    if parts:
        raise words.everything().error(
            f"{parts[0].strip('_').upper()} is not part of a query", hint=SHAPE
        )


def refuse_node(node: exp.Expr, place: Place) -> None:
    """Raise if an expression may not have such a node, which stands at a place."""
    if isinstance(node, exp.Window):
        raise refused_over(place)
    for kinds, what, why, hint in _NODES:
        if isinstance(node, kinds):
            raise place.out_of_scope(what, why, hint=hint)
    if isinstance(node, exp.CurrentDate | exp.CurrentTime | exp.CurrentTimestamp):
        refuse_function(node.sql_name().lower(), 0, place)
    if isinstance(node, exp.Star) and not _counted(node):
        raise place.error(
            "a star stands alone in SELECT, or in count(*)", hint="name the columns one by one"
        )
    if isinstance(node, exp.Alias | exp.Aliases) and not isinstance(node.parent, exp.Anonymous):
        raise place.error("AS cannot stand here", hint="name the columns of SELECT with it")


def _counted(star: exp.Star) -> bool:
    above = star.parent
    return isinstance(above, exp.Anonymous) and above.name.lower() == "count"


def others(node: exp.Expr, *read: str) -> bool:
    """Whether a node has parts besides those named."""
    return any(value for part, value in node.args.items() if part not in read)
