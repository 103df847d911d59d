"""The columns of a query's result: names, values, and for groups what they are made of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from braid.cql.syntax import Star
from braid.cql.term import ColumnName, Name, Written, bare
from braid.cql.types import check_boolean
from braid.model.expression import GROUPED, Column
from braid.model.query import WINDOW_END, Grouping, Output

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from braid.cql.event_time import EventTime
    from braid.cql.group import Groups
    from braid.cql.lower import Lowering
    from braid.cql.normal import Texts
    from braid.cql.place import Place
    from braid.cql.scope import Scope
    from braid.cql.syntax import SelectItem
    from braid.cql.types import Types
    from braid.model.errors import QueryError
    from braid.model.expression import Expression


@dataclass(frozen=True, slots=True)
class Entry:
    """One column of the result, as written; a star has become many."""

    what: Written
    alias: str | None
    place: Place
    of_star: bool = False

    def called(self) -> str:
        """The name that the rest of the query may use for it, or nothing."""
        inner = bare(self.what)
        own = inner.parts[-1].text if isinstance(inner, ColumnName) else ""
        return self.alias if self.alias is not None else own


def entries(
    scope: Scope, select: Sequence[SelectItem], times: Sequence[EventTime]
) -> list[Entry]:
    """The columns of SELECT, with stars spelled out.

    A star's column whose name another one has is called `stream_column`.
    """
    found = [entry for item in select for entry in _entries(scope, item, times)]
    names = Counter(entry.called().lower() for entry in found)
    return [
        replace(entry, alias=_full_name(entry))
        if entry.of_star and names[entry.called().lower()] > 1
        else entry
        for entry in found
    ]


def _full_name(entry: Entry) -> str:
    """The name of a star's column, with its stream's before it."""
    assert isinstance(entry.what, ColumnName), "a star stands for columns"
    return "_".join(part.text for part in entry.what.parts)


def _entries(scope: Scope, item: SelectItem, times: Sequence[EventTime]) -> Iterator[Entry]:
    if not isinstance(item.what, Star):
        yield Entry(item.what, item.alias.text if item.alias else None, item.place)
        return
    one = item.what.stream
    for stream in range(len(scope.aliases)) if one is None else [scope.stream(one)]:
        for column in scope.schemas[stream].names:
            if one is None and column.lower() in scope.merged[stream]:
                continue  # USING has it already
            if times[stream].is_computed and column == times[stream].column:
                continue  # it is none of the stream's own
            parts = (scope.aliases[stream], column)
            names = tuple(Name(part, item.place) for part in parts)
            yield Entry(ColumnName(names, item.place), None, item.place, of_star=True)


@dataclass(frozen=True, slots=True)
class Selection:
    """Reads what SELECT, GROUP BY and HAVING say."""

    lowering: Lowering
    types: Types
    texts: Texts
    columns: Sequence[Entry]

    def plain(self) -> tuple[Output, ...]:
        """The result of a query without groups."""
        derivations = self.lowering.derivations
        values = []
        for entry in self.columns:
            value = self.lowering.value(entry.what)
            self.types.of(value, derivations.type_of, entry.place)
            values.append(value)
        return self._outputs(values, None)

    def grouped(
        self, groups: Groups, group: Sequence[Written], having: Written | None, slide_us: int
    ) -> tuple[Grouping, tuple[Output, ...]]:
        """The groups of a query, and their result, which ends with `window_end`."""
        named = [(entry.called(), entry.what) for entry in self.columns]
        groups.add_keys(group, named)
        values = [groups.value(entry.what) for entry in self.columns]
        condition = None if having is None else groups.value(having, named)
        keys, aggregates = tuple(groups.keys.values()), tuple(groups.aggregates.values())
        grouping = Grouping(keys, aggregates, slide_us, condition)
        for entry, value in zip(self.columns, values, strict=True):
            self._group_type(groups, value, entry.place)
        if having is not None and condition is not None:
            check_boolean(self._group_type(groups, condition, having.place), having.place)
        outputs = self._outputs(values, grouping)
        moment = Output(WINDOW_END, Column(GROUPED, WINDOW_END))
        selected = any(
            out.value == moment.value and out.name.lower() == WINDOW_END for out in outputs
        )
        return grouping, outputs if selected else self._with_end(outputs, moment)

    def _group_type(
        self, groups: Groups, value: Expression, place: Place
    ) -> pa.DataType | None:
        return self.types.of(value, lambda column: groups.type_of(column, place), place)

    def _with_end(self, outputs: tuple[Output, ...], moment: Output) -> tuple[Output, ...]:
        for out, entry in zip(outputs, self.columns, strict=True):
            if out.name.lower() == WINDOW_END:
                raise entry.place.error(
                    f"a grouped query has a column {WINDOW_END} of its own",
                    hint="name this one anew",
                )
        return (*outputs, moment)

    def _outputs(
        self, values: Sequence[Expression], grouping: Grouping | None
    ) -> tuple[Output, ...]:
        taken: dict[str, Output] = {}
        for entry, value in zip(self.columns, values, strict=True):
            name = entry.alias or self.texts.name(value, grouping)
            if name.lower() in taken:
                raise self._twice(entry, name)
            taken[name.lower()] = Output(name, value)
        return tuple(taken.values())

    def _twice(self, entry: Entry, name: str) -> QueryError:
        inner = bare(entry.what)
        cure = "with AS"
        if isinstance(inner, ColumnName):
            found = self.lowering.scope.column(inner)
            alias = self.lowering.scope.aliases[found.stream]
            cure = f"such as {alias}.{found.column} AS {alias}_{found.column}"
        if entry.of_star:
            cure = "by writing out what the star stands for, each column with AS"
        return entry.place.error(
            f"two columns of the result are called {name!r}",
            hint=f"name one of them anew, {cure}",
        )
