"""The equalities of WHERE as one join key: sets of equal columns, one from every stream.

Joins on several keys, where a set leaves a stream out, are not supported yet; they get errors
here, and so do key columns whose types do not compare.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from braid.cql.scope import ColumnId, Scope
    from braid.cql.syntax import ColumnName, Equality, FromItem

_T = TypeVar("_T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class BoundEquality:
    """An equality of WHERE, and the columns that it means."""

    left: ColumnId
    right: ColumnId
    written: Equality

    def pair(self) -> tuple[ColumnId, ColumnId]:
        """Both columns, as written."""
        return self.left, self.right


def join_key(
    scope: Scope, streams: Sequence[FromItem], equalities: Sequence[Equality]
) -> tuple[tuple[str, ...], ...]:
    """The key columns of every stream; parts of the key in order of first appearance."""
    bound = [BoundEquality(scope.column(e.left), scope.column(e.right), e) for e in equalities]
    for equality in bound:
        _check_types(scope, equality)
    _check_connected(scope, streams, bound)
    parts = [_key_part(scope, bound, set(equal)) for equal in classes(e.pair() for e in bound)]
    return tuple(zip(*parts, strict=True))


def classes(pairs: Iterable[tuple[_T, _T]]) -> list[list[_T]]:
    """Sets of things that are equal, directly or through others, by first appearance.

    >>> classes([("a", "b"), ("x", "y"), ("c", "b")])
    [['a', 'b', 'c'], ['x', 'y']]
    """
    home: dict[_T, list[_T]] = {}
    for pair in pairs:
        sets = [home.setdefault(each, [each]) for each in pair]
        stays, moves = sorted(sets, key=len, reverse=True)
        if stays is not moves:
            stays.extend(moves)
            home.update(dict.fromkeys(moves, stays))
    return list({id(equal): equal for equal in home.values()}.values())


def _check_types(scope: Scope, equality: BoundEquality) -> None:
    left, right = (scope.type_of(column) for column in equality.pair())
    _check_flat(scope, equality.left, equality.written.left)
    _check_flat(scope, equality.right, equality.written.right)
    if left != right:
        raise equality.written.place.error(
            f"{scope.spell(equality.left)} is {left}, "
            f"but {scope.spell(equality.right)} is {right}",
            hint="CAST one of them in its DataFrame, before the query",
        )


def _check_flat(scope: Scope, column: ColumnId, written: ColumnName) -> None:
    if pa.types.is_nested(scope.type_of(column)):
        raise written.place.unsupported(
            f"the type {scope.type_of(column)} of {scope.spell(column)} in a key",
            hint="select the fields to join on into columns of their own, before the query",
        )


def _check_connected(
    scope: Scope, streams: Sequence[FromItem], bound: Sequence[BoundEquality]
) -> None:
    """Refuse a query that falls into parts which no equality connects."""
    alone = [(number, number) for number in range(len(streams))]
    islands = classes([*alone, *((e.left.stream, e.right.stream) for e in bound)])
    if len(islands) == 1:
        return
    names = [", ".join(scope.aliases[s] for s in sorted(island)) for island in islands]
    first = min(islands[1])
    raise streams[first].source.place.error(
        f"no equality in WHERE connects {names[0]} with {names[1]}",
        hint=f"add one, such as {scope.aliases[0]}.k = {scope.aliases[first]}.k",
    )


def _key_part(
    scope: Scope, bound: Sequence[BoundEquality], equal: set[ColumnId]
) -> tuple[str, ...]:
    """One part of the key: of every stream, the column that is among the equal ones."""
    inside = [equality for equality in bound if equality.left in equal]
    chosen: dict[int, ColumnId] = {}
    for equality in inside:
        sides = (equality.written.left, equality.written.right)
        for column, written in zip(equality.pair(), sides, strict=True):
            other = chosen.setdefault(column.stream, column)
            if other != column:
                both = f"{scope.spell(other)} and {scope.spell(column)}"
                raise written.place.unsupported(f"an equality within one stream ({both})")
    left_out = [alias for number, alias in enumerate(scope.aliases) if number not in chosen]
    if left_out:
        raise inside[0].written.place.unsupported(
            f"a join on several keys (this one leaves out {', '.join(left_out)})",
            hint="for each part of the key, equate a column of every stream",
        )
    return tuple(chosen[number].column for number in range(len(scope.aliases)))
