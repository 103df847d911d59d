"""The columns of a grouped query's partial aggregates, and their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from braid.evaluator import type_of
from braid.model.errors import BraidError
from braid.model.expression import GROUPED, Column
from braid.model.query import WINDOW_END, sum_type, time_column
from braid.plan.rounds import FIRST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from braid.model.query import Aggregate, Query, TimeNames
    from braid.plan.wire import Types


def key_column(number: int) -> Column:
    """The column of a group's key."""
    return Column(GROUPED, f"key {number}")


def is_group_key(column: Column) -> bool:
    """Whether a column of a grouped query's own is a group's key."""
    return column.column.startswith("key ")


def aggregate_column(number: int) -> Column:
    """The column of an aggregate."""
    return Column(GROUPED, f"aggregate {number}")


def grouped_types(
    query: Query, types: Types, event_time: TimeNames
) -> Mapping[Column, pa.DataType]:
    """The types of a grouped query's own columns."""
    grouping = query.grouping
    if grouping is None:
        return {}
    return {
        FIRST: pa.int64(),
        Column(GROUPED, WINDOW_END): types(time_column(event_time, 0)),
        **{key_column(i): type_of(key, types) for i, key in enumerate(grouping.keys)},
        **{
            aggregate_column(i): _aggregate_type(
                each, None if each.value is None else type_of(each.value, types)
            )
            for i, each in enumerate(grouping.aggregates)
        },
    }


def _aggregate_type(aggregate: Aggregate, kind: pa.DataType | None) -> pa.DataType:
    if aggregate.function == "count" or kind is None:
        return pa.int64()
    if aggregate.function in ("min", "max"):
        return kind
    total = sum_type(kind)
    if total is None:
        raise BraidError(f"cannot sum values of type {kind}", hint="sum numbers")
    return total
