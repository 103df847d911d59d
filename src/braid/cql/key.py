"""Equalities as join keys: sets of columns that are equal, directly or through others.

A key has one column of a stream at most. If two columns of one stream are equal, that stream
filters its rows by it, and the key has the first of them. Integers of different widths meet in
the widest, and decimals in one that holds all digits of all of them: each stream casts its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from braid.cql.snippet import Snippet
from braid.cql.types import check_flat

if TYPE_CHECKING:
    from braid.cql.condition import Equality
    from braid.cql.place import Place
    from braid.cql.scope import Scope
    from braid.cql.syntax import FromItem
    from braid.cql.types import Types

_T = TypeVar("_T", bound=Hashable)

MOST_DIGITS = 38
"""Of a decimal, in Spark and in Arrow."""

_INTEGERS = {pa.int16(): "SMALLINT", pa.int32(): "INT", pa.int64(): "BIGINT"}


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
    places = {(s.stream, s.sql): e.place for e in equalities for s in (e.left, e.right)}
    sides = {(s.stream, s.sql): s for e in equalities for s in (e.left, e.right)}
    pairs = [tuple((s.stream, s.sql) for s in (e.left, e.right)) for e in equalities]
    keys, filters = [], []
    for equal in classes((left, right) for left, right in pairs):
        first: dict[int, Snippet] = {}
        for side in (sides[each] for each in equal):
            kept = first.setdefault(side.stream, side)
            if kept is not side:
                filters.append(_equal(kept, side))
        kinds = {each: types.of_snippet(sides[each], places[each]) for each in equal}
        target = _target(
            [kind for kind in kinds.values() if kind is not None], places[equal[-1]]
        )
        keys.append(
            tuple(
                _widened(side, kinds[side.stream, side.sql], target)
                for _, side in sorted(first.items())
            )
        )
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
    if left is not None and right is not None and not _meet(left, right):
        raise equality.place.error(
            f"{equality.left.text} is {left}, but {equality.right.text} is {right}",
            hint="CAST one of them to the type of the other",
        )


def _meet(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether values of two types can be equal as they are, or once they are as wide."""
    families = (pa.types.is_signed_integer, pa.types.is_decimal)
    return left == right or any(family(left) and family(right) for family in families)


def _target(kinds: Sequence[pa.DataType], place: Place) -> pa.DataType | None:
    """The type that holds the values of all types of a key, all of one family."""
    if not kinds or len(set(kinds)) == 1:
        return kinds[0] if kinds else None
    if not pa.types.is_decimal(kinds[0]):
        return max(kinds, key=lambda kind: kind.bit_width)
    scale = max(kind.scale for kind in kinds)
    whole = max(kind.precision - kind.scale for kind in kinds)
    if whole + scale > MOST_DIGITS:
        raise place.error(
            f"these decimals meet in one of {whole} digits before the point and {scale} after, "
            f"and {MOST_DIGITS} in all are the most",
            hint="CAST them to one type that holds the values you have",
        )
    return pa.decimal128(whole + scale, scale)


def _widened(side: Snippet, kind: pa.DataType | None, target: pa.DataType | None) -> Snippet:
    """A side of a key in the type of the whole key."""
    if kind is None or target is None or kind == target:
        return side
    name = _INTEGERS.get(target) or f"decimal({target.precision}, {target.scale})"
    cast = f"cast({{}} AS {name})".format
    return Snippet(side.stream, cast(side.sql), cast(side.text), True, side.needs)


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
