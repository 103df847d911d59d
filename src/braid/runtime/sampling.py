"""Selectivities of pairs that a plan never joins: rows of one batch, joined on the side.

A small Spark job of its own, beside the batches. Of many rows it takes those whose keys hash
into a part of all hashes, on both sides the same: so pairs are as complete there as they are
everywhere, and their number stands for all.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.functions import expr

from braid.join.wire import TAGS
from braid.model.expression import Column
from braid.runtime.faults import unlogged
from braid.runtime.union import united

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from braid.model.query import Key, Query
    from braid.runtime.observation import Observation, Streams
    from braid.runtime.union import Gathered, StreamUnion

_ROWS = 100_000  # of a batch are enough


@dataclass(slots=True)
class Sampling:
    """Samples each pair that nothing is known of once in `every_us` of event time."""

    query: Query
    union: StreamUnion
    every_us: int
    _sampled_us: dict[Streams, int] = field(default_factory=dict, init=False)
    _under_way: Future[dict[Streams, float]] | None = field(default=None, init=False)
    _side: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "braid-samples"), init=False
    )

    def after(
        self, read: Callable[[], Gathered], rows: int, now_us: int, observation: Observation
    ) -> None:
        """Note what was found beside a batch, and look among its own `rows`, to be `read`."""
        if self._under_way is not None:
            if not self._under_way.done():
                return
            # A sample that fails is none; batches that fail say so themselves.
            if self._under_way.exception() is None:
                for pair, selectivity in self._under_way.result().items():
                    observation.note_sample(pair, selectivity)
            self._under_way = None
        due = [pair for pair in observation.unmeasured if self._is_due(pair, now_us)]
        if due and rows:
            self._sampled_us |= dict.fromkeys(due, now_us)
            self._under_way = self._side.submit(self._sample, read, rows, due)

    def is_awaited(self, observation: Observation) -> bool:
        """Whether something is to be known soon of which nothing is known now."""
        return self._under_way is not None and bool(observation.unknown)

    def _is_due(self, pair: Streams, now_us: int) -> bool:
        last_us = self._sampled_us.get(pair)
        return last_us is None or now_us - last_us >= self.every_us

    def _sample(
        self, read: Callable[[], Gathered], rows: int, pairs: Sequence[Streams]
    ) -> dict[Streams, float]:
        """For each pair of streams that both have rows, the part of all pairs that join."""
        parts, found = max(1, rows // _ROWS), {}
        with unlogged():
            gathered = read()
            for pair in pairs:
                ours, theirs, joined = _counted(self._keys(gathered, pair), pair, parts)
                if ours and theirs:
                    # Where none was found, there may be one in all.
                    found[pair] = min(1.0, max(1, joined * parts) / (ours * theirs))
        return found

    def _keys(self, gathered: Gathered, pair: Streams) -> DataFrame:
        """A hash of the keys that two streams share, for each of their rows that can join."""
        shared = [key for key in self.query.keys if pair <= key.streams]
        frames = (frame for streams, frame in gathered.items() if pair & set(streams))
        cases = " ".join(
            f"WHEN {stream} THEN xxhash64({', '.join(self._columns(shared, stream))})"
            for stream in sorted(pair)
        )
        keyed = (
            united(frames)
            .filter(f"at & {TAGS} = 0")
            .selectExpr("stream", f"CASE stream {cases} END AS key")
        )
        return keyed.filter("key IS NOT NULL")

    def _columns(self, keys: Sequence[Key], stream: int) -> Iterator[str]:
        for key in keys:
            if (name := key.of(stream)) is not None:
                yield self.union.hashable(Column(stream, name))

    def close(self) -> None:
        """Take no more samples."""
        self._side.shutdown(wait=False, cancel_futures=True)


def _counted(keys: DataFrame, pair: Streams, parts: int) -> tuple[int, int, int]:
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
