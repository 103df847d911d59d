"""Equalities as join keys: sets of columns that are equal, directly or through others.

A key has one column of a stream at most. If two columns of one stream are equal, that stream
filters its rows by it, and the key has the first of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from braid.cql.snippet import Snippet
from braid.cql.types import check_flat

if TYPE_CHECKING:
    from braid.cql.condition import Equality
    from braid.cql.scope import Scope
    from braid.cql.syntax import FromItem
    from braid.cql.types import Types

_T = TypeVar("_T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Joins:
    """The keys, each as one expression of every stream in it; and the filters they left."""

    keys: tuple[tuple[Snippet, ...], ...]
    filters: tuple[Snippet, ...]


def join_keys(
    scope: Scope, types: Types, streams: Sequence[FromItem], equalities: Sequence[Equality]
) -> Joins:
    """The keys of a query, in the order in which the text first speaks of each."""
    for equality in equalities:
        _check_types(types, equality)
    _check_connected(scope, streams, equalities)
    sides = {(s.stream, s.sql): s for e in equalities for s in (e.left, e.right)}
    pairs = [tuple((s.stream, s.sql) for s in (e.left, e.right)) for e in equalities]
    keys, filters = [], []
    for equal in classes((left, right) for left, right in pairs):
        first: dict[int, Snippet] = {}
        for side in (sides[each] for each in equal):
            kept = first.setdefault(side.stream, side)
            if kept is not side:
                filters.append(_equal(kept, side))
        keys.append(tuple(first[stream] for stream in sorted(first)))
    return Joins(tuple(keys), tuple(filters))


def classes(pairs: Iterable[tuple[_T, _T]]) -> list[list[_T]]:
    """Sets of things that are equal, directly or through others, by first appearance.

    >>> classes([("a", "b"), ("x", "y"), ("c", "b")])
    [['a', 'b', 'c'], ['x', 'y']]
    """
    order: dict[_T, int] = {}
    home: dict[_T, list[_T]] = {}
    for pair in pairs:
        sets = [home.setdefault(each, [each]) for each in pair]
        for each in pair:
            order.setdefault(each, len(order))
        stays, moves = sorted(sets, key=len, reverse=True)
        if stays is not moves:
            stays.extend(moves)
            home.update(dict.fromkeys(moves, stays))
    found = {id(equal): equal for equal in home.values()}.values()
    return sorted(
        (sorted(equal, key=order.__getitem__) for equal in found),
        key=lambda equal: order[equal[0]],
    )


def _equal(left: Snippet, right: Snippet) -> Snippet:
    """The filter that two expressions over one stream are equal."""
    sides = zip(left.bracketed(), right.bracketed(), strict=True)
    sql, text = (f"{one} = {other}" for one, other in sides)
    return Snippet(left.stream, sql, text, False, left.needs | right.needs)


def _check_types(types: Types, equality: Equality) -> None:
    left, right = (types.of_snippet(s, equality.place) for s in (equality.left, equality.right))
    check_flat(left, f"{equality.left.text} in a key", equality.place)
    check_flat(right, f"{equality.right.text} in a key", equality.place)
    if left is not None and right is not None and left != right:
        raise equality.place.error(
            f"{equality.left.text} is {left}, but {equality.right.text} is {right}",
            hint="CAST one of them to the type of the other",
        )


def _check_connected(
    scope: Scope, streams: Sequence[FromItem], equalities: Sequence[Equality]
) -> None:
    """Refuse a query that falls into parts which no equality connects."""
    alone = [(number, number) for number in range(len(streams))]
    islands = classes([*alone, *((e.left.stream, e.right.stream) for e in equalities)])
    if len(islands) == 1:
        return
    names = [", ".join(scope.aliases[s] for s in sorted(island)) for island in islands]
    first = min(islands[1])
    raise streams[first].source.place.error(
        f"no equality connects {names[0]} with {names[1]}",
        hint=f"add one to WHERE, such as {scope.aliases[0]}.k = {scope.aliases[first]}.k",
    )
