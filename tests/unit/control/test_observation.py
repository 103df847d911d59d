"""The join graph of a query: each pair of streams has one key there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from braid import cql
from braid.control.observation import keys_of
from braid.model.join_graph import JoinGraph

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("a.x = b.x AND b.x = c.x", [["a", "b", "c"]]),
        ("a.x = b.x AND b.y = c.y", [["a", "b"], ["b", "c"]]),
        ("a.x = b.x AND b.x = c.x AND a.y = b.y AND b.y = c.y", [["a", "b", "c"]]),
        ("a.x = b.x AND b.x = c.x AND a.y = b.y", [["a", "b"], ["a", "c"], ["b", "c"]]),
    ],
)
def test_streams_with_several_keys_in_common_have_one_in_the_graph(
    where: str, keys: list[list[str]]
) -> None:
    froms = ", ".join(f"{name} [RANGE 2 SECONDS]" for name in "abc")
    text = f"SELECT a.x FROM {froms} WHERE {where}"
    query = cql.bind(text, dict.fromkeys("abc", SCHEMA), event_time="ts")
    assert keys_of(query) == keys
    pairs = dict.fromkeys([("a", "b"), ("a", "c"), ("b", "c")], 0.1)
    JoinGraph(dict.fromkeys("abc", 1.0), pairs, 2.0, keys=keys_of(query))  # takes them
