"""Receiving a batch: from the wire's form to sorted rows per port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.model.errors import BraidError
from braid.plan.wire import (
    BAD_ROW,
    NULL_KEY,
    NULL_TIME,
    OUT_OF_RANGE,
    REPORT,
    TAG_BITS,
    TAGS,
    Layout,
    tag_of,
)
from braid.record.commit import newer
from braid.state.order import sort_order
from braid.worker.gather import ROW_BITS, gather

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from braid.plan.join_plan import JoinPlan


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A worker's rows of one round: those that may join, sorted, by port; and all the others.

    Rows that come late or lie too far ahead are by stream. `input_rows` are all that came
    straight from a source.
    """

    rows: tuple[pa.RecordBatch, ...]
    late: Mapping[int, pa.RecordBatch]
    ahead: Mapping[int, pa.RecordBatch]
    newest_us: tuple[int | None, ...]
    input_rows: int
    null_key_rows: int
    null_time_rows: int
    out_of_range_time_rows: int
    bad_rows: int
    reports: tuple[str, ...]

    @property
    def late_rows(self) -> int:
        """Rows from before the watermark."""
        return sum(int(rows.num_rows) for rows in self.late.values())

    @property
    def ahead_rows(self) -> int:
        """Rows from too far ahead of the driver's clock."""
        return sum(int(rows.num_rows) for rows in self.ahead.values())


def receive(
    plan: JoinPlan,
    number: int,
    batches: Sequence[pa.RecordBatch],
    late_before_us: int | None,
    *,
    ahead_after_us: int | None = None,
    changes: bool = False,
) -> Arrivals:
    """Sort a round's rows by port, key hash and time, and set the refused ones apart.

    Those are late, or come after the moment from which on rows are too far ahead. If the plan
    `changes`, the last tree gets rows that others have too.
    """
    a_round = plan.rounds.rounds[number]
    schema = plan.wire.schema(a_round, reports=number > 0)
    table = pa.Table.from_batches(batches) if batches else schema.empty_table()
    table = table.combine_chunks()
    packed = _only_chunk(table.column("at")).to_numpy()
    hashes = _only_chunk(table.column("hash")).to_numpy().view(np.uint64)
    tags, times = packed & TAGS, packed >> TAG_BITS
    counts = np.bincount(tags, minlength=TAGS + 1)
    behind = None if late_before_us is None else times < late_before_us
    beyond = None if ahead_after_us is None else times > ahead_after_us
    rows: list[pa.RecordBatch] = []
    late: dict[int, list[pa.RecordBatch]] = {}
    ahead: dict[int, list[pa.RecordBatch]] = {}
    newest: list[int | None] = [None] * len(plan.streams)
    input_rows = int(counts[NULL_KEY] + counts[NULL_TIME])
    # A stream that comes by several ports of a tree is counted at the first.
    seen: set[tuple[int, int | None]] = {
        (len(plan.rounds.trees) - 1, stream) for stream in plan.streams if changes
    }
    for place, port in enumerate(a_round.ports):
        layout = plan.wire.layout(port)
        if port.made:
            rows.append(no_rows(layout))
            continue
        tag = tag_of(a_round, place)
        mine = tags == tag
        for apart, refused in ((behind, late), (beyond, ahead)):
            if port.stream is not None and apart is not None:
                places = np.flatnonzero(mine & apart)
                mine &= ~apart
                if (port.tree, port.stream) not in seen:
                    those = _stored_rows(layout, table, hashes, times, places)
                    refused.setdefault(port.stream, []).append(those)
        found = np.flatnonzero(mine)
        order = found[sort_order(hashes[found], times[found])]
        rows.append(_stored_rows(layout, table, hashes, times, order))
        if port.stream is not None and (port.tree, port.stream) not in seen:
            seen.add((port.tree, port.stream))
            input_rows += int(counts[tag])
            if len(found):
                newest[port.stream] = newer(newest[port.stream], int(times[found].max()))
    timeless = packed[tags == NULL_TIME] if counts[NULL_TIME] else packed[:0]
    out_of_range = int(np.count_nonzero(timeless == OUT_OF_RANGE))
    bad = int(np.count_nonzero(timeless == BAD_ROW))
    return Arrivals(
        rows=tuple(rows),
        late={stream: pa.concat_batches(parts) for stream, parts in late.items()},
        ahead={stream: pa.concat_batches(parts) for stream, parts in ahead.items()},
        newest_us=tuple(newest),
        input_rows=input_rows,
        null_key_rows=int(counts[NULL_KEY]),
        null_time_rows=int(counts[NULL_TIME]) - out_of_range - bad,
        out_of_range_time_rows=out_of_range,
        bad_rows=bad,
        reports=_reports(table) if counts[REPORT] else (),
    )


def no_rows(layout: Layout) -> pa.RecordBatch:
    """No rows, in the form of runs."""
    return pa.RecordBatch.from_pylist([], schema=layout.schema())


def _reports(table: pa.Table) -> tuple[str, ...]:
    column = table.column("report")
    return tuple(column.drop_null().to_pylist())


def _only_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _taken(column: pa.ChunkedArray, order: NDArray[np.int64]) -> pa.Array:
    """The values of a column at some places; one of more than 2 GB has several chunks."""
    if column.num_chunks < 2:
        return _only_chunk(column).take(pa.array(order))
    starts = np.cumsum([0, *map(len, column.chunks)])
    chunk = np.searchsorted(starts, order, side="right") - 1
    try:
        return gather(column.chunks, chunk << ROW_BITS | order - starts[chunk])
    except pa.ArrowInvalid:
        raise BraidError(
            "a worker got more than 2 GB of one stream's column in a batch",
            hint="take fewer files in a batch (--files-per-batch), or more --workers",
        ) from None


def _stored_rows(
    layout: Layout,
    table: pa.Table,
    hashes: NDArray[np.uint64],
    times: NDArray[np.int64],
    order: NDArray[np.int64],
) -> pa.RecordBatch:
    """A port's rows in the form that its runs have."""
    slots = (_taken(table.column(f"slot{slot}"), order) for slot in layout.slots)
    # Spark may label a type otherwise than we do: a nested field as non-null, a time zone.
    typed = (slot.cast(kind) for slot, kind in zip(slots, layout.types, strict=True))
    columns = [pa.array(hashes[order]), pa.array(times[order]), *typed]
    return pa.RecordBatch.from_arrays(columns, schema=layout.schema())
