"""Putting rows into the order of a run: by key hash, then by event time.

Key hashes are spread evenly over their range, so one counting pass over their leading bits
leaves buckets of a row or two: sorting takes linear time. A frequent key makes a large bucket;
its rows arrive nearly in time order, which insertion sort likes, and where they do not, a merge
sort takes over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.state.compiled import compiled
from braid.state.runs import Times, hashes_of, times_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from braid.state.groups import Hashes

_PATIENCE = 8  # moves per row of a bucket before insertion sort yields to merge sort


def sort_order(hashes: Hashes, times: Times) -> NDArray[np.int64]:
    """The permutation that sorts rows by (hash, time); equal rows keep their order."""
    order: NDArray[np.int64] = _sort_order(hashes, times)
    return order


def sort_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """A record batch in run order."""
    return rows.take(pa.array(sort_order(hashes_of(rows), times_of(rows))))


def merge_rows(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Several sorted batches as one."""
    if len(batches) == 1:
        return batches[0]
    return sort_rows(pa.concat_batches(batches))


@compiled()
def _sort_order(hashes: Hashes, times: Times) -> NDArray[np.int64]:
    count = len(hashes)
    if count < 2:
        return np.arange(count)
    low, high = hashes[0], hashes[0]
    for h in hashes:
        low, high = min(low, h), max(high, h)
    shift = np.uint64(0)
    while (high - low) >> shift >= np.uint64(2 * count):
        shift += np.uint64(1)
    ends = np.zeros(np.int64((high - low) >> shift) + 2, np.int64)
    for h in hashes:
        ends[np.int64((h - low) >> shift) + 1] += 1
    for b in range(1, len(ends)):
        ends[b] += ends[b - 1]
    order = np.empty(count, np.int64)
    for row in range(count):
        bucket = np.int64((hashes[row] - low) >> shift)
        order[ends[bucket]] = row
        ends[bucket] += 1
    start = 0
    for b in range(len(ends) - 1):
        if ends[b] - start > 1:
            _sort_bucket(order[start : ends[b]], hashes, times)
        start = ends[b]
    return order


@compiled()
def _sort_bucket(bucket: NDArray[np.int64], hashes: Hashes, times: Times) -> None:
    """Sort the row numbers of one bucket in place, stably."""
    moves_left = _PATIENCE * len(bucket)
    for i in range(1, len(bucket)):
        row = bucket[i]
        h, t = hashes[row], times[row]
        j = i
        while j > 0 and (
            hashes[bucket[j - 1]] > h
            or (hashes[bucket[j - 1]] == h and times[bucket[j - 1]] > t)
        ):
            bucket[j] = bucket[j - 1]
            j -= 1
        bucket[j] = row
        moves_left -= i - j
        if moves_left < 0:
            _merge_sort(bucket, hashes, times)
            return


@compiled()
def _merge_sort(bucket: NDArray[np.int64], hashes: Hashes, times: Times) -> None:
    """Sort the row numbers of one bucket in place, stably, whatever their order.

    Our own, for NumPy's sorts take numba eight seconds to compile, in every process at once.
    """
    count = len(bucket)
    rows, merged = bucket.copy(), np.empty(count, np.int64)
    width = 1
    while width < count:
        for lower in range(0, count, 2 * width):
            middle, upper = min(lower + width, count), min(lower + 2 * width, count)
            left, right = lower, middle
            for place in range(lower, upper):
                take_right = left == middle
                if not take_right and right < upper:
                    a, b = rows[left], rows[right]
                    take_right = hashes[b] < hashes[a] or (
                        hashes[b] == hashes[a] and times[b] < times[a]
                    )
                if take_right:
                    merged[place] = rows[right]
                    right += 1
                else:
                    merged[place] = rows[left]
                    left += 1
        rows, merged = merged, rows
        width *= 2
    bucket[:] = rows
