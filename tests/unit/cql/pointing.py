"""Queries with «marks» around the place that an error should point at, and streams for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from braid.cql import bind
from braid.model.errors import QueryError

if TYPE_CHECKING:
    from braid.model.errors import BraidError
    from braid.model.query import Grouping, Query

COLUMNS = {
    "k": pa.int64(),
    "j": pa.int32(),
    "v": pa.float64(),
    "name": pa.string(),
    "ts": pa.timestamp("us"),
    "s": pa.struct({"x": pa.int64()}),
    "tags": pa.list_(pa.string()),
    "limit": pa.int64(),
}
SCHEMAS = {
    "a": pa.schema(COLUMNS),
    "b": pa.schema(COLUMNS),
    "c": pa.schema(COLUMNS),
    "Orders": pa.schema({**COLUMNS, "Amount": pa.int64()}),
}
A, B, C = "a [RANGE 1 DAY]", "b [RANGE 1 DAY]", "c [RANGE 1 DAY]"
AB = f"FROM {A}, {B} WHERE a.k = b.k"


def bound(text: str) -> Query:
    return bind(text, SCHEMAS, event_time="ts")


def grouping_of(text: str) -> Grouping:
    grouping = bound(text).grouping
    assert grouping is not None
    return grouping


def hint_of(error: BraidError) -> str:
    assert error.hint is not None
    return error.hint


def failing(marked: str) -> QueryError:
    """The error of a query, known to point at its marked part."""
    before, inside, after = marked.replace("»", "«").split("«")
    with pytest.raises(QueryError) as caught:
        bound(before + inside + after)
    error = caught.value
    assert error.text[error.lower : error.upper] == inside
    assert error.lower == len(before)
    assert error.hint
    return error
