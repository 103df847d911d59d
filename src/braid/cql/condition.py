"""The conditions of ON and WHERE, each put where it costs least.

Every conjunct becomes exactly one of these: an equality of two streams, which joins a key; a
filter of one stream; bounds on event times; or a condition over several streams, which workers
evaluate on matches. A condition without columns filters the first stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from braid.cql.lower import Lowering, check_variables, refuse_aggregates
from braid.cql.snippet import Snippet, operand, snippet
from braid.cql.term import Term, Written, split
from braid.cql.types import check_boolean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.cql.place import Place
    from braid.cql.scope import Scope
    from braid.cql.term import ColumnName
    from braid.cql.timebound import TimeReader
    from braid.cql.types import Types
    from braid.model.expression import Expression
    from braid.model.query import TimeBound


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right`, of two streams."""

    left: Snippet
    right: Snippet
    place: Place


@dataclass(slots=True)
class Conditions:
    """What the conjuncts became, in the order of the text; `rest` under their own `repr`.

    Two expressions are the same if that is the same: to Python, 1 and TRUE are equal.
    """

    equalities: list[Equality] = field(default_factory=list)
    filters: list[Snippet] = field(default_factory=list)
    bounds: list[tuple[TimeBound, Place]] = field(default_factory=list)
    rest: dict[str, Expression] = field(default_factory=dict)

    def filters_of(self, stream: int) -> tuple[Snippet, ...]:
        """The filters of one stream, none twice."""
        mine = {each.sql: each for each in self.filters if each.stream == stream}
        return tuple(mine.values())


@dataclass(frozen=True, slots=True)
class Sorter:
    """Puts conditions where they belong."""

    lowering: Lowering
    times: TimeReader
    types: Types

    def sort(self, conditions: Sequence[Written]) -> Conditions:
        """Part all conditions into conjuncts, and these into their kinds."""
        found = Conditions()
        for condition in conditions:
            refuse_aggregates(condition, "WHERE or ON")
            for each in self._conjuncts(condition):
                self._place(each, found)
        return found

    def _conjuncts(self, condition: Written) -> Iterator[Written]:
        for each in split(condition, "AND"):
            streams = self.lowering.streams(each)
            if (
                isinstance(each, Term)
                and each.shape == "_ BETWEEN _ AND _"
                and len(streams) > 1
            ):
                inner, least, most = each.operands
                yield Term((inner, ">=", least), each.place)
                yield Term((inner, "<=", most), each.place)
            else:
                yield each

    def _place(self, each: Written, found: Conditions) -> None:
        streams = self.lowering.streams(each)
        if len(streams) < 2:
            found.filters.append(self._filter(each, min(streams, default=0)))
            return
        equality = self._equality(each)
        bounds = None if equality else self.times.bounds(each)
        if equality:
            found.equalities.append(equality)
        elif bounds is not None:
            found.bounds += [(bound, each.place) for bound in bounds]
        else:
            value = self.lowering.value(each)
            check_boolean(
                self.types.of(value, self.lowering.derivations.type_of, each.place), each.place
            )
            found.rest.setdefault(repr(value), value)

    def _filter(self, each: Written, stream: int) -> Snippet:
        check_variables(each, self.lowering.scope)
        made = operand(self.lowering.scope, each, stream)
        check_boolean(self.types.of_snippet(made, each.place), each.place)
        return made

    def _equality(self, each: Written) -> Equality | None:
        """An equality whose sides are each of a stream of its own."""
        if not isinstance(each, Term) or each.shape != "_ = _":
            return None
        scope = self.lowering.scope
        join_spaces = [self.lowering.streams(side) for side in each.operands]
        if [len(home) for home in join_spaces] != [1, 1]:
            return None
        for side in each.operands:
            check_variables(side, scope)
        left, right = (
            snippet(scope, side, min(home))
            for side, home in zip(each.operands, join_spaces, strict=True)
        )
        return Equality(left, right, each.place)


def using_equality(scope: Scope, left: ColumnName, right: ColumnName, place: Place) -> Equality:
    """The equality that a column of USING stands for."""
    one, other = (snippet(scope, side, scope.column(side).stream) for side in (left, right))
    return Equality(one, other, place)
