"""Expressions over the streams' columns: what one stream can do is left to it.

Every largest part that needs the columns of one stream becomes a derived column of that stream,
which Catalyst computes before the split. What is left has to be made of `FUNCTIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from braid.cql.call import NAMED, call, described, flat, own_constant
from braid.cql.functions import is_aggregate, is_difference
from braid.cql.place import SIMPLER, Place
from braid.cql.snippet import Snippet, joined, operand, own_column, query_text, snippet
from braid.cql.sugar import spelled_out
from braid.cql.term import (
    ColumnName,
    Term,
    bare,
    column_names,
    connective,
    function_call,
    split,
    terms,
)
from braid.cql.zone import as_instants
from braid.model.expression import Call, Column, Expression
from braid.model.query import Derived

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from braid.cql.scope import Scope
    from braid.cql.term import Written
    from braid.cql.types import Types
    from braid.model.errors import QueryError


@dataclass(slots=True)
class Derivations:
    """The derived columns of all streams, each named by its SQL or, if that is taken, anew.

    `names` are those other names; they can only be told when all columns are known. `walls` are
    columns without a time zone whose instants are known under another name.
    """

    scope: Scope
    types: Types
    names: Mapping[tuple[int, str], str]
    walls: Mapping[Column, Column] = field(default_factory=dict)
    found: dict[Column, Snippet] = field(default_factory=dict)

    def column(self, made: Snippet, place: Place) -> Column:
        """An expression over one stream as a column of it, one for each text."""
        if made.column is not None:
            return Column(made.stream, made.column)
        self.types.of_snippet(made, place)
        name = self.names.get((made.stream, made.sql), made.sql)
        column = Column(made.stream, name)
        self.found[column] = made
        return column

    def snippet(self, column: Column) -> Snippet:
        """A column of a stream, own or derived, as text."""
        found = self.found.get(column)
        return own_column(self.scope, column) if found is None else found

    def of(self, stream: int) -> tuple[Derived, ...]:
        """The derived columns of one stream, in an order that no spelling changes."""
        mine = sorted((m.sql, c.column) for c, m in self.found.items() if c.stream == stream)
        return tuple(Derived(name, sql) for sql, name in mine)

    def type_of(self, column: Column) -> pa.DataType | None:
        """The type of a stream's own column, or of a derived one if it is known."""
        made = self.found.get(column)
        if made is None:
            return self.scope.type_of(column.stream, column.column)
        return self.types.derived.get((made.stream, made.sql))

    def settled_names(self) -> dict[tuple[int, str], str]:
        """Names for those whose SQL, but for case, is the name of another column there."""
        names: dict[tuple[int, str], str] = {}
        for stream, schema in enumerate(self.scope.schemas):
            taken = {name.lower() for name in schema.names}
            for sql in sorted(
                made.sql for made in self.found.values() if made.stream == stream
            ):
                name = sql
                while name.lower() in taken:
                    name += "'"
                taken.add(name.lower())
                if name != sql:
                    names[stream, sql] = name
        return names


@dataclass(slots=True)
class TermBudget:
    """How many parts the expressions of a query may still come to have.

    BETWEEN and its like say their operands twice, so that a short text may become a long one.
    """

    left: int = 20_000

    def spend(self, place: Place) -> None:
        """Count one part; the last straw is an error."""
        self.left -= 1
        if self.left < 0:
            raise place.error(
                "the expressions of this query are too long, once spelled out", hint=SIMPLER
            )


@dataclass(frozen=True, slots=True)
class Lowering:
    """Puts what is written into expressions over the streams' columns."""

    scope: Scope
    derivations: Derivations
    budget: TermBudget = field(default_factory=TermBudget)
    known: dict[Written, frozenset[int]] = field(default_factory=dict)

    def streams(self, written: Written) -> frozenset[int]:
        """The streams whose columns an expression needs."""
        if isinstance(written, ColumnName):
            return frozenset([self.scope.column(written).stream])
        if written not in self.known:
            inner = (self.streams(each) for each in written.operands)
            self.known[written] = frozenset().union(*inner)
        return self.known[written]

    def value(self, written: Written) -> Expression:
        """One expression; a `QueryError` if neither one stream nor our functions can do it."""
        inner = bare(written)
        self.budget.spend(inner.place)
        streams = self.streams(inner)
        if len(streams) == 1:
            return self._derived(inner, min(streams))
        if not streams:
            found = own_constant(inner)
            return self._derived(inner, 0) if found is None else found
        if connective(inner):
            return self._connected(inner)
        made = call(inner, self.value) if isinstance(inner, Term) else None
        if made is None:
            raise self._beyond(inner)
        if isinstance(made, Call):
            return as_instants(made, self.derivations, inner.place)
        return made

    def _derived(self, inner: Written, stream: int) -> Expression:
        check_variables(inner, self.scope)
        return self.derivations.column(snippet(self.scope, inner, stream), inner.place)

    def _connected(self, inner: Written) -> Expression:
        """AND or OR: what is of one stream goes together, for each column costs on the wire."""
        word = connective(inner) or ""
        parts: dict[int, list[Written]] = {}
        for number, each in enumerate(self._parts(inner, word)):
            streams = self.streams(each)
            home = min(streams) if len(streams) == 1 else -1 - number
            parts.setdefault(home, []).append(each)
        values = []
        for stream, together in parts.items():
            if len(together) == 1:
                values.append(self.value(together[0]))
                continue
            for each in together:
                check_variables(each, self.scope)
            made = joined([operand(self.scope, each, stream) for each in together], word)
            values.append(self.derivations.column(made, together[0].place))
        return flat(word.lower(), values)

    def _parts(self, inner: Written, word: str) -> Iterator[Written]:
        """The operands of AND or OR, and in place of a BETWEEN over several streams its own."""
        for each in split(inner, word):
            several = isinstance(each, Term) and len(self.streams(each)) > 1
            longer = spelled_out(each) if isinstance(each, Term) and several else None
            if longer is not None and connective(longer) == word:
                yield from split(longer, word)
            else:
                yield each

    def _beyond(self, inner: Written) -> QueryError:
        what = described(inner) if isinstance(inner, Term) else "this"
        cure = self._difference(inner) if isinstance(inner, Term) else None
        if cure is not None:
            return inner.place.error(
                f"{what} cannot be computed over several streams", hint=cure
            )
        return inner.place.error(
            f"{what} cannot be computed over several streams",
            hint="apply it to columns of one stream at a time; over several there are "
            f"arithmetic, comparisons, CASE, {', '.join(NAMED)}",
        )

    def _difference(self, term: Term) -> str | None:
        """The cure for a function that tells how far two moments are apart."""
        if not is_difference(str(term.pieces[0])) or len(term.operands) != 2:
            return None
        ends = [query_text(self.scope, each) for each in term.operands]
        # With a unit before them the start comes first, without one the end.
        later, earlier = ends[::-1] if isinstance(term.pieces[2], str) else ends
        return f"subtract them: {later} - {earlier} is an interval"


def check_variables(written: Written, scope: Scope) -> None:
    """Refuse a lambda whose variable hides a column within it: in Spark it would mean that."""
    for term in terms(written):
        if "->" not in term.pieces:
            continue
        end = term.pieces.index("->")
        variables = {str(piece).strip("`").lower() for piece in term.pieces[:end]}
        for name in column_names(term):
            if scope.column(name).column.lower() in variables:
                raise name.place.error(
                    f"a variable of this lambda hides the column {scope.column(name).column!r}",
                    hint="give the variable another name",
                )


def refuse_aggregates(written: Written, where: str) -> None:
    """Raise if an expression has an aggregate where there can be none."""
    for term in terms(written):
        found = function_call(term)
        if found is not None and is_aggregate(found[0]):
            cure = "HAVING takes conditions on groups"
            if where == "an aggregate":
                cure = "aggregate a column, or an expression of columns"
            raise term.place.error(f"an aggregate cannot stand in {where}", hint=cure)
