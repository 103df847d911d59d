"""Any slice of a stream, as Arrow.

A slice `lower_us:upper_us` holds the rows that *arrive* in it, counted from the workload's
start, in order of arrival. FillPacer that touch give, one after the other, just the rows of the
slice that spans them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.workload.arrivals import PIECE_ROWS, pieces, regimes
from braid.workload.draw import DrawnRows, draw, value_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from braid.workload.arrivals import Ints, Piece
    from braid.workload.spec import WorkloadSpec

_BATCH_ROWS = 2 * PIECE_ROWS
"""Most rows of one batch: the bytes of its longest pads still count in 31 bits."""

_PAD_STARTS = 4096
"""Different pads there are; each is a stretch of one text."""


def schema(spec: WorkloadSpec) -> pa.Schema:
    """Columns of every stream: event time, join key, payload and, if asked for, a pad."""
    columns = [("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("v", pa.int64())]
    return pa.schema(columns + [("pad", pa.string())] * bool(spec.pad_bytes))


def rows(spec: WorkloadSpec, stream: str, lower_us: int, upper_us: int) -> pa.Table:
    """The rows of a slice as one table."""
    return pa.Table.from_batches(batches(spec, stream, lower_us, upper_us), schema(spec))


def batches(
    spec: WorkloadSpec, stream: str, lower_us: int, upper_us: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, some ten thousands at a time, so that a long one fits in memory."""
    columns = schema(spec)
    for arrived in arrivals(spec, stream, lower_us, upper_us):
        for first in range(0, len(arrived), _BATCH_ROWS):
            part = arrived.take(slice(first, first + _BATCH_ROWS))
            yield _record_batch(spec, columns, part)


def arrivals(
    spec: WorkloadSpec, stream: str, lower_us: int, upper_us: int
) -> Iterator[DrawnRows]:
    """The rows of a slice as NumPy arrays, in as many parts as suits us."""
    values = value_counts(spec)
    order = regimes(spec, spec.stream(stream))
    drawn = (
        (piece, draw(spec, stream, values, piece))
        for piece in pieces(order, lower_us - spec.disorder_us, upper_us)
    )
    for part in _lined_up(drawn) if spec.disorder_us else (part for _, part in drawn):
        yield part.split(upper_us)[0].split(lower_us)[1]


def _lined_up(drawn: Iterable[tuple[Piece, DrawnRows]]) -> Iterator[DrawnRows]:
    """Pieces in order of `ts` in, the same rows in order of arrival out.

    Invariant: once a piece is drawn, whatever arrives before its end is at hand. Rows that
    arrive later wait, and are looked at again only when as many new ones have come: however
    long the delays, a row is moved a few times, not once per piece.
    """
    waiting: list[DrawnRows] = []
    fresh: list[DrawnRows] = []
    for piece, part in drawn:
        fresh.append(part.in_order_of_arrival())
        if sum(map(len, fresh)) >= sum(map(len, waiting)):
            known = DrawnRows.joined(waiting + fresh).in_order_of_arrival()
            arrived, later = known.split(piece.upper_us)
            waiting, fresh = [later], []
            yield arrived
    if waiting + fresh:
        yield DrawnRows.joined(waiting + fresh).in_order_of_arrival()


def _record_batch(spec: WorkloadSpec, columns: pa.Schema, arrived: DrawnRows) -> pa.RecordBatch:
    ts = pa.array(arrived.ts_us + spec.start_us).cast(columns.field("ts").type)
    arrays = [ts, pa.array(arrived.keys), pa.array(arrived.payloads)]
    if spec.pad_bytes:
        arrays.append(_pads(arrived.payloads, spec.pad_bytes))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _pads(payloads: Ints, width: int) -> pa.StringArray:
    """Strings of one width, picked by the payload: other columns are the same without them."""
    stretches = np.lib.stride_tricks.sliding_window_view(_pad_text(width), width)
    data = stretches[payloads % _PAD_STARTS]
    offsets = np.arange(len(payloads) + 1, dtype=np.int32) * np.int32(width)
    return pa.StringArray.from_buffers(
        len(payloads), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))
    )


@lru_cache(maxsize=8)
def _pad_text(width: int) -> npt.NDArray[np.uint8]:
    letters = np.random.Generator(np.random.Philox(key=0)).integers(
        ord("a"), ord("z"), _PAD_STARTS + width - 1, np.uint8, endpoint=True
    )
    return letters
