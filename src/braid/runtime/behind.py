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
    from collections.abc import Callable, Iterable

    Ask = Callable[[int], float | None]
    """From the rows that were read so far, about how many were not; None if nobody can tell."""


def _nobody_tells(read_rows: int) -> None:
    return None


@dataclass(slots=True)
class Behind:
    """Learns from every batch; the sources are asked, if they can tell."""

    ask: Ask = _nobody_tells
    unread_rows: Measure = field(default=Measure.estimated(0), init=False)
    _queue_ms: float = field(default=0.0, init=False)
    _rows: int = field(default=0, init=False)
    _advanced_ms: float = field(default=0.0, init=False)

    def after(self, rows: int, elapsed_ms: float, advanced_ms: float) -> None:
        """A batch of `rows` took `elapsed_ms`; event time went on by `advanced_ms`."""
        self._rows += rows
        self._advanced_ms += advanced_ms
        self._queue_ms = max(0.0, self._queue_ms + elapsed_ms - advanced_ms)
        told = self.ask(self._rows)
        if told is None:
            rate = self._rows / self._advanced_ms if self._advanced_ms > 0 else 0.0
            told = self._queue_ms * rate
        self.unread_rows = Measure.estimated(told)


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
