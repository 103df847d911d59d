"""Windows of rows: `[PARTITION BY col ROWS n]`.

A row is in such a window up to the moment at which n rows of its partition are younger. So it
has a deadline as joined rows have one, but one that is known only when those n rows have come:
it is computed anew for the rows that a batch may touch. All rows of the query wait until no
earlier one can come, so that what is computed then stays true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.model.expression import Column
from braid.model.query import UNBOUNDED_US
from braid.plan.wire import UNTIL, Layout
from braid.state.order import sort_rows
from braid.state.runs import hashes_of, times_of
from braid.worker.gather import gather
from braid.worker.kernel import expand, locate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from braid.model.query import History
    from braid.state.groups import Hashes

_EVER = np.iinfo(np.int64)


def with_deadlines(layout: Layout) -> Layout:
    """The layout of a history's rows once their deadlines are known."""
    return Layout((UNTIL, *layout.columns), (pa.int64(), *layout.types), (), layout.recovered)


def touched_rows(runs: Sequence[pa.RecordBatch], hashes: Hashes) -> pa.RecordBatch | None:
    """The rows of all runs that have one of some sorted, distinct hashes."""
    if not runs or not len(hashes):
        return None
    shape = len(runs), len(hashes)
    starts, counts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    always = np.full(len(hashes), _EVER.min), np.full(len(hashes), _EVER.max)
    for number, run in enumerate(runs):
        locate(hashes_of(run), times_of(run), hashes, *always, starts[number], counts[number])
    _, rows = expand(starts, counts)
    if not len(rows):
        return None
    columns = [
        gather([run.column(i) for run in runs], rows) for i in range(runs[0].num_columns)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=runs[0].schema)


def remembered(
    history: History,
    layout: Layout,
    stream: int,
    old: pa.RecordBatch | None,
    fresh: pa.RecordBatch,
) -> tuple[pa.RecordBatch, NDArray[np.bool_]]:
    """Old and new rows of a history with their deadlines, and which of them are new."""
    parts = [fresh] if old is None else [old, fresh]
    rows = pa.Table.from_batches(parts).combine_chunks().to_batches()
    every = rows[0] if rows else fresh
    is_fresh = np.arange(every.num_rows) >= every.num_rows - fresh.num_rows
    until = _deadlines(history, layout, stream, every)
    hashes, times, *columns = every.columns
    columns = [hashes, times, pa.array(until), *columns, pa.array(is_fresh)]
    schema = with_deadlines(layout).schema().append(pa.field("fresh", pa.bool_()))
    ordered = sort_rows(pa.RecordBatch.from_arrays(columns, schema=schema))
    *columns, flag = ordered.columns
    marked: NDArray[np.bool_] = flag.to_numpy(zero_copy_only=False)
    return pa.RecordBatch.from_arrays(columns, schema=with_deadlines(layout).schema()), marked


def without_superseded(
    history: History, layout: Layout, stream: int, rows: pa.RecordBatch
) -> pa.RecordBatch:
    """A run's rows without those that n younger ones of it have driven out of the window."""
    kept = _deadlines(history, layout, stream, rows) == UNBOUNDED_US
    return rows if kept.all() else rows.filter(pa.array(kept))


def _deadlines(
    history: History, layout: Layout, stream: int, rows: pa.RecordBatch
) -> NDArray[np.int64]:
    """The last moment at which each row is in its window, as far as these rows tell."""
    times = times_of(rows)
    partition = _partitions(history, layout, stream, rows)
    order = np.lexsort((times, partition))
    part, at = partition[order], times[order]
    changes = np.flatnonzero(np.diff(part, append=-1)) + 1
    end = changes[np.searchsorted(changes, np.arange(len(part)), "right")]
    # The first place behind each row with a later time, and n - 1 further on.
    steps = np.flatnonzero((np.diff(at, append=0) != 0) | (np.diff(part, append=-1) != 0)) + 1
    younger = steps[np.searchsorted(steps, np.arange(len(part)), "right")]
    last = younger + history.rows - 1
    driven_out = last < end
    until = np.full(len(part), UNBOUNDED_US)
    until[driven_out] = at[last[driven_out]] - 1
    deadlines = np.empty_like(until)
    deadlines[order] = until
    return deadlines


def _partitions(
    history: History, layout: Layout, stream: int, rows: pa.RecordBatch
) -> NDArray[np.int64]:
    """A number for each row's partition; rows of a partition share the key, and so the hash."""
    _, numbers = np.unique(hashes_of(rows), return_inverse=True)
    for name in history.partition:
        column = Column(stream, name)
        if column in layout.recovered:
            continue  # it is in the hash
        place = layout.place(column)
        assert place is not None, "a history stores its partition"
        values = rows.column(place)
        if pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 becomes 0.0
        codes = values.dictionary_encode(null_encoding="encode").indices.to_numpy()
        _, numbers = np.unique(
            numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True
        )
    return numbers.astype(np.int64)
