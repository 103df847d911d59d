"""Selectivities of pairs that a plan never joins: rows of one batch, joined on the side.

Of many rows it takes those whose keys hash into a part of all hashes, on both sides the same:
so pairs are as complete there as they are everywhere, and their number stands for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.functions import expr

from braid.model.expression import Column
from braid.plan.wire import TAGS
from braid.spark.union import united

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from braid.engine.cluster import Pair
    from braid.model.query import Key
    from braid.spark.union import Gathered, StreamUnion

_ROWS = 100_000  # of a batch are enough


def sampled(
    union: StreamUnion, gathered: Gathered, rows: int, pairs: Sequence[Pair]
) -> dict[Pair, float]:
    """For each pair of streams that both have rows, the part of all pairs that join."""
    parts, found = max(1, rows // _ROWS), {}
    for pair in pairs:
        ours, theirs, joined = _counted(_keys(union, gathered, pair), pair, parts)
        if ours and theirs:
            # Where none was found, there may be one in all.
            found[pair] = min(1.0, max(1, joined * parts) / (ours * theirs))
    return found


def _keys(union: StreamUnion, gathered: Gathered, pair: Pair) -> DataFrame:
    """A hash of the keys that two streams share, for each of their rows that can join."""
    shared = [key for key in union.keys if pair <= key.streams]
    frames = (frame for streams, frame in gathered.items() if pair & set(streams))
    cases = " ".join(
        f"WHEN {stream} THEN xxhash64({', '.join(_columns(union, shared, stream))})"
        for stream in sorted(pair)
    )
    keyed = (
        united(frames)
        .filter(f"at & {TAGS} = 0")
        .selectExpr("stream", f"CASE stream {cases} END AS key")
    )
    return keyed.filter("key IS NOT NULL")


def _columns(union: StreamUnion, keys: Sequence[Key], stream: int) -> Iterator[str]:
    for key in keys:
        if (name := key.of(stream)) is not None:
            yield union.hashable(Column(stream, name))


def _counted(keys: DataFrame, pair: Pair, parts: int) -> tuple[int, int, int]:
    """The rows of either stream, and the pairs that join in one of so many parts of all.

    In one pass: all keys of the other parts count as one that joins nothing.
    """
    ours, theirs = sorted(pair)
    row = (
        keys.selectExpr("stream", f"CASE WHEN pmod(key, {parts}) = 0 THEN key END AS key")
        .groupBy("key")
        .agg(
            expr(f"count_if(stream = {ours}) AS ours"),
            expr(f"count_if(stream = {theirs}) AS theirs"),
        )
        .selectExpr(
            "coalesce(sum(ours), 0)",
            "coalesce(sum(theirs), 0)",
            "coalesce(sum(CASE WHEN key IS NOT NULL THEN ours * theirs END), 0)",
        )
        .first()
    )
    assert row is not None, "a sum has a row"
    return row[0], row[1], row[2]
