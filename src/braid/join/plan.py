"""What every worker must know of a query, and the arithmetic of its windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.join.probe import Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.join.wire import Wire
    from braid.model.query import Query

FIRST_STORED = 2
"""The stored columns of a run start after hash and time."""


@dataclass(frozen=True)
class JoinPlan:
    """A query, laid out for execution; the same for all workers and batches."""

    query: Query
    wire: Wire
    groups: int
    lateness_us: int

    @property
    def streams(self) -> range:
        """The streams' numbers: their places in FROM."""
        return range(len(self.query.streams))

    def window_us(self, stream: int) -> int:
        """The window of a stream."""
        return self.query.streams[stream].window_us

    def probe_order(self, stream: int) -> tuple[int, ...]:
        """In which order rows of a stream meet the other streams."""
        return tuple(other for other in self.streams if other != stream)

    def stored(self, stream: int, runs: Sequence[pa.RecordBatch]) -> Stored:
        """Batches of a stream's rows, ready to be probed."""
        keys = 0 if self.wire.exact else len(self.wire.key_types)
        places = tuple(range(FIRST_STORED, FIRST_STORED + keys))
        return Stored(tuple(runs), self.window_us(stream), places)

    def watermark_us(
        self, newest_us: Sequence[int | None], so_far_us: int | None
    ) -> int | None:
        """The time that no more row is expected below, from each stream's newest row.

        A stream that has shown no row yet holds it back; it never falls.
        """
        seen = [newest for newest in newest_us if newest is not None]
        if len(seen) < len(newest_us) or not seen:
            return so_far_us
        reached = min(seen) - self.lateness_us
        return reached if so_far_us is None else max(reached, so_far_us)

    def horizon_us(self, stream: int, watermark_us: int | None) -> int | None:
        """Rows of a stream from before this time can be reached by no future row."""
        return None if watermark_us is None else watermark_us - self.window_us(stream)

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The schema of results."""
        return pa.schema(
            [(out.name, self._output_type(out.stream, out.column)) for out in self.query.output]
        )

    def _output_type(self, stream: int, column: str) -> pa.DataType:
        layout = self.wire.streams[stream]
        if column in layout.names:
            return layout.types[layout.names.index(column)]
        if column in self.query.streams[stream].key:
            return self.wire.key_types[self.query.streams[stream].key.index(column)]
        return self.wire.time_types[stream]
