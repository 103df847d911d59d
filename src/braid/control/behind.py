"""How far a query is behind its input: rows that the sources have and no batch has read.

Folders tell it by the sizes of their files, and some of Spark's sources by their offsets. Where
nobody tells, a queue stands for it: each batch adds the time that it took, and takes away the
event time that it brought. A query that keeps up with its streams has nothing in that queue;
while no rows come, nothing is added.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from braid.optimize.timing.statistics import Measure

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Behind:
    """What is known of unread rows after every batch."""

    unread_rows: Measure = field(default=Measure.estimated(0))
    queue_ms: float = 0.0
    rows: int = 0
    advanced_ms: float = 0.0

    def observe(
        self, rows: int, elapsed_ms: float, advanced_ms: float, told: float | None
    ) -> Behind:
        """What is known after one more batch of `rows`, in which event time went on.

        The sources have `told` how many rows they have, if they can.
        """
        rows, advanced_ms = self.rows + rows, self.advanced_ms + advanced_ms
        queue_ms = max(0.0, self.queue_ms + elapsed_ms - (advanced_ms - self.advanced_ms))
        if told is None:
            told = queue_ms * (rows / advanced_ms if advanced_ms > 0 else 0.0)
        return Behind(Measure.estimated(told), queue_ms, rows, advanced_ms)


def rows_between(offsets: Iterable[tuple[str | None, str | None]]) -> float | None:
    """The rows from the offsets that were read to the latest ones, of all sources.

    Only offsets of topics and partitions, as Kafka has them, count rows. Those of other sources
    count files, seconds or anything: then nobody can tell.
    """
    total = 0.0
    for read, latest in offsets:
        ends, heads = _partitions(read), _partitions(latest)
        if ends is None or heads is None:
            return None
        total += sum(max(0, head - ends.get(place, 0)) for place, head in heads.items())
    return total


def _partitions(offset: str | None) -> dict[tuple[str, str], int] | None:
    try:
        topics: Any = json.loads(offset or "null")
        found = {(t, p): n for t, parts in topics.items() for p, n in parts.items()}
    except (ValueError, AttributeError):
        return None
    are_counts = all(type(n) is int for n in found.values())
    return found if found and are_counts else None
