"""Fetching column values by row reference, across the runs of a stream.

A *reference* is `run << ROW_BITS | row`. Values of one, two, four or eight bytes without nulls
are copied by a compiled loop, whatever they mean; all other types go through Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from braid.state.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ROW_BITS = 40
_ROW_MASK = (1 << ROW_BITS) - 1
_WORDS: dict[int, type[np.unsignedinteger[Any]]] = {
    8: np.uint8,
    16: np.uint16,
    32: np.uint32,
    64: np.uint64,
}


def gather(chunks: Sequence[pa.Array], rows: NDArray[np.int64]) -> pa.Array:
    """The values at `rows`; `chunks` are one column of each run, in the order of the runs."""
    kind = chunks[0].type
    words = _WORDS.get(kind.bit_width) if _is_plain(kind) else None
    if words is not None and not any(chunk.null_count for chunk in chunks):
        values = np.empty(len(rows), words)
        for run, chunk in enumerate(chunks):
            _copy(_words(chunk, words), run, rows, values)
        return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(values)])
    if len(chunks) == 1:
        return chunks[0].take(pa.array(rows))
    return _gather_any(chunks, rows)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether an array of this type is nothing but validity and fixed-width values."""
    return bool(pa.types.is_primitive(kind)) and not pa.types.is_boolean(kind)


def _words(
    chunk: pa.Array, words: type[np.unsignedinteger[Any]]
) -> NDArray[np.unsignedinteger[Any]]:
    data = np.frombuffer(chunk.buffers()[1] or b"", words, len(chunk) + chunk.offset)
    return data[chunk.offset :]


@compiled()
def _copy(
    column: NDArray[np.unsignedinteger[Any]],
    run: int,
    rows: NDArray[np.int64],
    values: NDArray[np.unsignedinteger[Any]],
) -> None:
    """Write the values that references to one run ask for."""
    for place in range(len(rows)):
        if rows[place] >> ROW_BITS == run:
            values[place] = column[rows[place] & _ROW_MASK]


def _gather_any(chunks: Sequence[pa.Array], rows: NDArray[np.int64]) -> pa.Array:
    """Take from each run what is asked of it, then put the values into the order asked for."""
    run = rows >> ROW_BITS
    order = np.argsort(run, kind="stable")
    bounds = np.searchsorted(run[order], np.arange(len(chunks) + 1))
    within = rows[order] & _ROW_MASK
    parts = [
        chunk.take(pa.array(within[lower:upper]))
        for chunk, lower, upper in zip(chunks, bounds[:-1], bounds[1:], strict=True)
    ]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(back))
