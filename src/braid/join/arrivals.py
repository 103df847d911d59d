"""Receiving a batch: from the wire's form to sorted rows per stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.join.wire import TAG_BITS
from braid.state.order import sort_order
from braid.state.runs import times_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from braid.join.plan import JoinPlan


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A worker's rows of one batch: those that may join, sorted, and counts of the others."""

    rows: tuple[pa.RecordBatch, ...]
    late: tuple[pa.RecordBatch, ...]
    null_key_rows: int
    null_time_rows: int

    @property
    def input_rows(self) -> int:
        """All rows that arrived, whatever became of them."""
        joining = sum(int(rows.num_rows) for rows in self.rows)
        return joining + self.late_rows + self.null_key_rows + self.null_time_rows

    @property
    def late_rows(self) -> int:
        """Rows from before the watermark."""
        return sum(int(rows.num_rows) for rows in self.late)

    def newest_us(self, so_far_us: Sequence[int | None]) -> tuple[int | None, ...]:
        """Each stream's newest event time, these rows and the past taken together."""
        here = [int(times_of(rows).max()) if rows.num_rows else None for rows in self.rows]
        return tuple(newer(a, b) for a, b in zip(here, so_far_us, strict=True))


def newer(a: int | None, b: int | None) -> int | None:
    """The later of two times, either of which may not have come yet."""
    if a is None or b is None:
        return a if b is None else b
    return max(a, b)


def receive(
    plan: JoinPlan, batches: Sequence[pa.RecordBatch], watermark_us: int | None
) -> Arrivals:
    """Sort a batch's rows by stream, key hash and time, and set the late ones apart."""
    streams = len(plan.streams)
    table = pa.Table.from_batches(batches) if batches else wire_schema(plan).empty_table()
    table = table.combine_chunks()
    packed = _only_chunk(table.column(0)).to_numpy()
    hashes = _only_chunk(table.column(1)).to_numpy().view(np.uint64)
    tags, times = packed & ((1 << TAG_BITS) - 1), packed >> TAG_BITS
    per_tag = np.bincount(tags, minlength=3 * streams)
    late = np.zeros(len(times), np.bool_) if watermark_us is None else times < watermark_us
    ontime_rows, late_rows = [], []
    for stream in plan.streams:
        mine = tags == stream
        place = np.flatnonzero(mine & ~late)
        order = place[sort_order(hashes[place], times[place])]
        ontime_rows.append(_stored_rows(plan, stream, table, hashes, times, order))
        behind = np.flatnonzero(mine & late)
        late_rows.append(_stored_rows(plan, stream, table, hashes, times, behind))
    return Arrivals(
        rows=tuple(ontime_rows),
        late=tuple(late_rows),
        null_key_rows=int(per_tag[streams : 2 * streams].sum()),
        null_time_rows=int(per_tag[2 * streams : 3 * streams].sum()),
    )


def wire_schema(plan: JoinPlan) -> pa.Schema:
    """The columns that cross from the split to a worker."""
    slots = [(f"slot{i}", kind) for i, kind in enumerate(plan.wire.slots)]
    return pa.schema([("at", pa.int64()), ("hash", pa.int64()), *slots])


def _only_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _stored_rows(
    plan: JoinPlan,
    stream: int,
    table: pa.Table,
    hashes: NDArray[np.uint64],
    times: NDArray[np.int64],
    order: NDArray[np.int64],
) -> pa.RecordBatch:
    """One stream's rows in the form that its runs have."""
    layout = plan.wire.streams[stream]
    places = pa.array(order)
    slots = (_only_chunk(table.column(2 + slot)).take(places) for slot in layout.slots)
    # Spark may label a type otherwise than we do: a nested field as non-null, a time zone.
    typed = (slot.cast(kind) for slot, kind in zip(slots, layout.types, strict=True))
    columns = [pa.array(hashes[order]), pa.array(times[order]), *typed]
    return pa.RecordBatch.from_arrays(columns, schema=layout.schema())
