"""Expressions over one stream's own columns, as values in place of text for Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.cql.call import call, described, own_constant
from braid.cql.parse import parse
from braid.cql.quote import quoted
from braid.cql.scope import Scope
from braid.cql.syntax import Star
from braid.cql.term import ColumnName, Term, bare, column_names
from braid.model.errors import BraidError
from braid.model.expression import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from braid.cql.term import Written
    from braid.model.expression import Expression

_ANYWHERE = "[UNBOUNDED]"
_HINT = "leave it to Spark, or compute it in the table, before the query"


def own_expression(source: str, schema: pa.Schema, sql: str) -> Expression:
    """What Spark SQL over a source's own columns says; its columns are of stream 0.

    A `BraidError` names what cannot be said by the functions of `braid.model.expression`.
    """
    query = f"SELECT {sql} FROM {quoted(source)} {_ANYWHERE}, other {_ANYWHERE}"
    (item,) = parse(query).select
    assert not isinstance(item.what, Star), "a binder has read it before"
    scope = Scope((source,), (source,), (schema,), (frozenset(),))

    def value(written: Written) -> Expression:
        inner = bare(written)
        if isinstance(inner, ColumnName):
            found = scope.column(inner)
            if found.fields:
                raise BraidError(f"fields of {found.column!r} need Spark", hint=_HINT)
            return Column(0, found.column)
        if not any(True for _ in column_names(inner)):
            constant = own_constant(inner)
            if constant is not None:
                return constant
        made = call(inner, value) if isinstance(inner, Term) else None
        if made is None:
            what = described(inner) if isinstance(inner, Term) else "this"
            raise BraidError(f"{what} needs Spark", hint=_HINT)
        return made

    return value(item.what)
