"""Truth in three values, and choosing one value among several."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from braid.evaluator.comparison import compare, equal
from braid.evaluator.kinds import (
    Value,
    cast,
    common_column,
    is_boolean,
    is_null,
    misfit,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def truth(user: str, value: Value) -> Value:
    """A value that must be boolean, for what `user` names."""
    if not is_boolean(value.type) and not is_null(value.type):
        raise misfit(f"{user} must be boolean, not {value.type}")
    return cast(value, pa.bool_())


def all_of(*values: Value) -> Value:
    """AND: false if any is false, else null if any is null."""
    return reduce(pc.and_kleene, (truth("an argument of AND", value) for value in values))


def any_of(*values: Value) -> Value:
    """OR: true if any is true, else null if any is null."""
    return reduce(pc.or_kleene, (truth("an argument of OR", value) for value in values))


def opposite(value: Value) -> Value:
    """NOT."""
    return pc.invert(truth("the argument of NOT", value))


def among(value: Value, *elements: Value) -> Value:
    """IN: any of the equalities holds; where none does and one is null, nobody knows."""
    return any_of(*(equal(value, element) for element in elements))


def coalesce(*values: Value) -> Value:
    """The first that is not null."""
    return pc.coalesce(*_of_one_type("COALESCE", values))


def case(*arguments: Value) -> Value:
    """The value after the first condition that is true; else the odd last argument, or null."""
    pairs = len(arguments) // 2
    conditions = [truth("a condition of CASE", c) for c in arguments[: 2 * pairs : 2]]
    otherwise = arguments[2 * pairs :] or (pa.scalar(None),)
    *values, result = _of_one_type("CASE", [*arguments[1 : 2 * pairs : 2], *otherwise])
    for condition, value in reversed(list(zip(conditions, values, strict=True))):
        result = pc.if_else(pc.fill_null(condition, False), value, result)
    return result


def _extreme(symbol: str, name: str, *values: Value) -> Value:
    """The value that compares so with all others; nulls take no part."""
    best, *others = _of_one_type(name, values)
    for value in others:
        better = pc.or_kleene(pc.is_null(best), compare(symbol, value, best))
        best = pc.if_else(pc.fill_null(better, False), value, best)
    return best


greatest = partial(_extreme, ">", "GREATEST")
least = partial(_extreme, "<", "LEAST")


def _of_one_type(name: str, values: Sequence[Value]) -> list[Value]:
    kind = values[0].type
    for value in values[1:]:
        both = common_column(kind, value.type)
        if both is None:
            raise misfit(f"{name} cannot choose between {kind} and {value.type}")
        kind = both
    return [cast(value, kind) for value in values]
