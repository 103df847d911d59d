"""Selectivities of pairs that a plan never joins: rows of one batch, joined on the side.

A small Spark job of its own, beside the batches. Of many rows it takes those whose keys hash
into a part of all hashes, on both sides the same: so pairs are as complete there as they are
everywhere, and their number stands for all.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from braid.join.wire import TAGS
from braid.model.expression import Column
from braid.runtime.faults import unlogged
from braid.runtime.split import hashable_slot, rounds_entered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from braid.join.plan import JoinPlan
    from braid.runtime.observation import Observation, Streams

_ROWS = 100_000  # of a batch are enough


@dataclass(slots=True)
class Sampling:
    """Samples each pair that nothing is known of once in `every_us` of event time."""

    every_us: int
    _sampled_us: dict[Streams, int] = field(default_factory=dict, init=False)
    _under_way: Future[dict[Streams, float]] | None = field(default=None, init=False)
    _side: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "braid-samples"), init=False
    )

    def after(
        self,
        plan: JoinPlan,
        read: Callable[[], DataFrame],
        rows: int,
        now_us: int,
        observation: Observation,
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
            self._under_way = self._side.submit(_sample, plan, read, rows, due)

    def _is_due(self, pair: Streams, now_us: int) -> bool:
        last_us = self._sampled_us.get(pair)
        return last_us is None or now_us - last_us >= self.every_us

    def close(self) -> None:
        """Take no more samples."""
        self._side.shutdown(wait=False, cancel_futures=True)


def _sample(
    plan: JoinPlan, read: Callable[[], DataFrame], rows: int, pairs: Sequence[Streams]
) -> dict[Streams, float]:
    """For each pair of streams that both have rows, the part of all pairs that join."""
    parts, found = max(1, rows // _ROWS), {}
    with unlogged():
        tagged = read()
        for pair in pairs:
            sides = [_keys_of(plan, tagged, stream, pair) for stream in sorted(pair)]
            counts = [side.count() for side in sides]
            first, second = (
                side.filter(f"pmod(key, {parts}) = 0").groupBy("key").count().toDF("key", name)
                for side, name in zip(sides, ("ours", "theirs"), strict=True)
            )
            row = first.join(second, "key").selectExpr("sum(ours * theirs)").first()
            assert row is not None, "a sum has a row"
            if all(counts):
                # Where none was found, there may be one in all.
                matches = max(1, (row[0] or 0) * parts)
                found[pair] = min(1.0, matches / (counts[0] * counts[1]))
    return found


def _keys_of(plan: JoinPlan, tagged: DataFrame, stream: int, pair: Streams) -> DataFrame:
    """A hash of the keys that two streams share, for each row of one of them."""
    number, tag = next(
        (number, tag)
        for number in rounds_entered(plan)
        for tag, port in enumerate(plan.rounds.rounds[number].ports)
        if port.stream == stream
    )
    rows = tagged.filter(f"at & {TAGS} = {tag}")
    if "round" in tagged.columns:
        rows = rows.filter(f"round = {number}")
    hashes = ", ".join(_hashes(plan, number, tag, stream, pair))
    return rows.selectExpr(f"xxhash64({hashes}) AS key")


def _hashes(plan: JoinPlan, number: int, tag: int, stream: int, pair: Streams) -> Iterator[str]:
    """The hash of each shared key, from the column or, where it does not travel, as it is."""
    layout = plan.wire.layout(plan.rounds.rounds[number].ports[tag])
    slots = dict(zip(layout.columns, layout.slots, strict=True))
    for key in plan.query.keys:
        name = key.of(stream)
        if name is None or not pair <= key.streams:
            continue
        column = Column(stream, name)
        if column in layout.recovered:
            yield "hash"
        else:
            yield f"xxhash64({hashable_slot(plan, slots[column])})"
