"""GROUP BY: keys, aggregates, and expressions over the columns of groups.

At every slide there is one row per group, so what SELECT and HAVING say of a grouped query must
be made of its keys, its aggregates, `window_end` and constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.cql.call import call, described
from braid.cql.constant import constant, number
from braid.cql.functions import is_aggregate
from braid.cql.lower import refuse_aggregates
from braid.cql.scope import matching
from braid.cql.snippet import query_text
from braid.cql.term import ColumnName, Term, Written, bare, column_names, function_call, terms
from braid.cql.types import check_flat, summed
from braid.cql.zone import refuse_zones
from braid.model.expression import GROUPED, Call, Column, Expression, Literal
from braid.model.query import WINDOW_END, Aggregate

if TYPE_CHECKING:
    from braid.cql.lower import Lowering
    from braid.cql.place import Place
    from braid.cql.types import Types
    from braid.model.errors import QueryError

Named = Sequence[tuple[str, Written]]
"""The columns of the result as written, each under the name that the query may use for it."""


@dataclass(slots=True)
class Groups:
    """Collects the keys and aggregates of a query, and puts the rest in terms of these."""

    lowering: Lowering
    types: Types
    event_type: pa.DataType
    keys: dict[str, Expression] = field(default_factory=dict)  # under their own `repr`
    aggregates: dict[str, Aggregate] = field(default_factory=dict)  # likewise
    texts: dict[str, int] = field(default_factory=dict)  # spellings of keys, and their numbers

    def add_keys(self, written: Sequence[Written], named: Named) -> None:
        """Read GROUP BY: expressions, names of the result's columns, or their numbers."""
        for each in written:
            meant = self._meant(each, named)
            refuse_aggregates(meant, "GROUP BY")
            value = self.lowering.value(meant)
            kind = self.types.of(value, self.lowering.derivations.type_of, each.place)
            check_flat(kind, "a key of groups", each.place)
            self.keys.setdefault(repr(value), value)
            text = query_text(self.lowering.scope, meant)
            self.texts[text] = list(self.keys).index(repr(value))

    def _meant(self, written: Written, named: Named) -> Written:
        """What an entry of GROUP BY stands for."""
        inner, ordinal = bare(written), number(written)
        if ordinal is not None:
            if not 1 <= ordinal <= len(named):
                raise written.place.error(
                    f"SELECT has no column number {ordinal}", hint=f"it has {len(named)}"
                )
            inner = bare(named[ordinal - 1][1])
        if isinstance(inner, ColumnName) and not self.lowering.scope.is_known(inner):
            if _is_window_end(inner):
                raise inner.place.error(
                    f"{WINDOW_END} is no key", hint="leave it out: every row of a group has one"
                )
            inner = _called(inner, named) or inner
        refuse_aggregates(inner, "GROUP BY")
        if not self.lowering.streams(inner):
            raise written.place.error("a constant makes no groups", hint="leave it out")
        return inner

    def value(self, written: Written, named: Named = ()) -> Expression:
        """An expression over groups; HAVING may use the names of the result's columns."""
        inner = bare(written)
        self.lowering.budget.spend(inner.place)
        if isinstance(inner, ColumnName):
            return self._column(inner, named)
        found = function_call(inner)
        if found is not None and is_aggregate(found[0]):
            return self._aggregate(inner, *found)
        known = constant(inner) or self._key(inner)
        made = known or call(inner, lambda each: self.value(each, named))
        if made is None:
            raise _beyond(inner)
        if isinstance(made, Call):
            refuse_zones(made, lambda column: self.type_of(column, inner.place), inner.place)
        return made

    def _column(self, name: ColumnName, named: Named) -> Expression:
        if _is_window_end(name):
            return Column(GROUPED, WINDOW_END)
        found = self._key(name)
        if found is not None:
            return found
        meant = _called(name, named)
        if meant is not None:
            return self.value(meant)
        text = query_text(self.lowering.scope, name)
        raise name.place.error(
            f"{text} is neither in GROUP BY nor within an aggregate",
            hint=f"add {text} to GROUP BY, or take one value of each group: max({text})",
        )

    def _key(self, inner: Written) -> Expression | None:
        """The key that an expression spells."""
        names = list(column_names(inner))
        known = all(self.lowering.scope.is_known(name) for name in names)
        if not known or any(_is_window_end(name) for name in names):
            return None
        number = self.texts.get(query_text(self.lowering.scope, inner))
        return None if number is None else Column(GROUPED, f"key {number}")

    def _aggregate(self, term: Term, name: str, arguments: Sequence[Written]) -> Expression:
        if len(arguments) != 1:
            raise term.place.error(f"{name} takes one argument", hint=f"write {name}(x)")
        inner = bare(arguments[0])
        refuse_aggregates(inner, "an aggregate")
        star = isinstance(inner, Term) and inner.shape == "*"
        value = None if star else self.lowering.value(inner)
        if name in ("avg", "mean"):
            total = self._add(Aggregate("sum", value), term.place)
            return Call("/", (total, self._add(Aggregate("count", value), term.place)))
        if name == "count" and isinstance(value, Literal) and value.value is not None:
            value = None
        return self._add(Aggregate(name, value), term.place)

    def _add(self, aggregate: Aggregate, place: Place) -> Column:
        self._aggregate_type(aggregate, place)
        self.aggregates.setdefault(repr(aggregate), aggregate)
        return Column(GROUPED, f"aggregate {list(self.aggregates).index(repr(aggregate))}")

    def _aggregate_type(self, aggregate: Aggregate, place: Place) -> pa.DataType | None:
        """The type of an aggregate; an error for a value that it cannot take."""
        if aggregate.value is None:
            return pa.int64()
        kind = self.types.of(aggregate.value, self.lowering.derivations.type_of, place)
        if aggregate.function == "count":
            return pa.int64()
        if aggregate.function == "sum":
            return summed(kind, place)
        check_flat(kind, f"the value of {aggregate.function}", place)
        return kind

    def type_of(self, column: Column, place: Place) -> pa.DataType | None:
        """The type of a column of groups."""
        if column.column == WINDOW_END:
            return self.event_type
        kind, number = column.column.split()
        if kind == "aggregate":
            return self._aggregate_type(list(self.aggregates.values())[int(number)], place)
        key = list(self.keys.values())[int(number)]
        return self.types.of(key, self.lowering.derivations.type_of, place)


def is_grouped(written: Sequence[Written]) -> bool:
    """Whether any of these has an aggregate."""
    calls = (function_call(term) for each in written for term in terms(each))
    return any(found is not None and is_aggregate(found[0]) for found in calls)


def _is_window_end(name: ColumnName) -> bool:
    return len(name.parts) == 1 and name.parts[0].text.lower() == WINDOW_END


def _called(name: ColumnName, named: Named) -> Written | None:
    """The column of the result that a name means."""
    if len(name.parts) > 1:
        return None
    found = matching(name.parts[0].text, [each for each, _ in named])
    if len(found) > 1:
        raise name.place.error(
            f"two columns of the result are called {name.parts[0].text!r}",
            hint="use the expression itself",
        )
    return named[found[0]][1] if found else None


def _beyond(inner: Term) -> QueryError:
    if is_grouped([inner]):
        hint = "compute it where you read the results"
    else:
        hint = "add the whole expression to GROUP BY"
    return inner.place.error(f"{described(inner)} cannot be computed over groups", hint=hint)
