"""From partial aggregates to groups at boundaries.

A partial aggregate counts for all boundaries from its first to its last. Counts and whole sums
are swept: what begins to count is added, what ends is taken away, and between two such moments
nothing changes, so the work follows the rows that come out. Other aggregates cannot be taken
back; for them, each partial aggregate is written out once per boundary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from braid.worker.sums import SumOverflow, fit, overflowing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

BOUNDARY = "boundary"
MOST_ROWS = 1 << 22
"""Rows come in pieces of about this size."""


class Counting(NamedTuple):
    """Partial aggregates and, of each, the first and the last boundary to be shown."""

    table: pa.Table
    first: Integers
    last: Integers

    def kept(self, mask: NDArray[np.bool_]) -> Counting:
        """The rows that a mask keeps."""
        return Counting(self.table.filter(pa.array(mask)), self.first[mask], self.last[mask])


def between(table: pa.Table, slide_us: int, after_us: int | None, up_to_us: int) -> Counting:
    """What counts for boundaries after one moment, up to another."""
    first = table.column("first").to_numpy()
    last = np.minimum(table.column("time").to_numpy(), up_to_us // slide_us * slide_us)
    if after_us is not None:
        first = np.maximum(first, (after_us // slide_us + 1) * slide_us)
    return Counting(table, first, last).kept(first <= last)


def spread(counting: Counting, slide_us: int) -> Iterator[pa.Table]:
    """Each row once per boundary that it counts for; all of a boundary in one piece."""
    while len(counting.first):
        table, first, last = counting
        lower = int(first.min())
        upper = min(lower + max(1, MOST_ROWS // len(first)) * slide_us, int(last.max()) + 1)
        until = np.minimum(last, (upper - 1) // slide_us * slide_us)
        of_row, ordinal = _repeated(np.maximum(0, (until - first) // slide_us + 1))
        boundary = pa.array(first[of_row] + ordinal * slide_us)
        yield table.take(pa.array(of_row)).append_column(BOUNDARY, boundary)
        rest = Counting(table, np.maximum(first, -(-upper // slide_us) * slide_us), last)
        counting = rest.kept(rest.first <= last)


def sweep(
    counting: Counting, slide_us: int, keys: Sequence[str], sums: Sequence[str]
) -> Iterator[pa.Table]:
    """Groups at their boundaries; `sums` are columns of 64-bit integers, which add up.

    Raises:
        SumOverflow: A sum that would be shown does not fit 64 bits.
    """
    table, first, last = counting
    if not len(first):
        return
    groups, group = _numbered(table, keys)
    group = np.concatenate([group, group])
    moment = np.concatenate([first, last + slide_us])
    order = np.lexsort((moment, group))
    group, moment = group[order], moment[order]
    # Of several changes at one moment, only what holds after the last of them shows.
    settled = np.append((np.diff(group) != 0) | (np.diff(moment) != 0), True)
    begins, of_group = moment[settled], group[settled]

    def level(change: Integers) -> Integers:
        """The sum of what counts; each group's is zero again at its end, so they can follow.

        On the way it may wrap round, and back.
        """
        total: Integers = np.cumsum(np.concatenate([change, -change])[order])[settled]
        return total

    # What is last in its group counts for nothing any more.
    lengths = np.diff(begins, append=begins[-1:]) // slide_us
    lengths[level(np.ones(len(first), np.int64)) == 0] = 0
    levels = {}
    for name in sums:
        column = table.column(name)
        values = column.fill_null(0).to_numpy()
        if not fit(column) and overflowing(level, values)[lengths > 0].any():
            raise SumOverflow(name)
        levels[name] = level(values), level(column.is_valid().cast("int64").to_numpy())
    ends = np.cumsum(lengths)
    lower = 0
    while lower < len(lengths):
        done = ends[lower - 1] if lower else 0
        upper = max(int(np.searchsorted(ends, done + MOST_ROWS, "right")), lower + 1)
        of_span, ordinal = _repeated(lengths[lower:upper])
        of_span += lower
        boundary = begins[of_span] + ordinal * slide_us
        named = {BOUNDARY: pa.array(boundary)}
        named |= {name: groups.column(name).take(pa.array(of_group[of_span])) for name in keys}
        for name, (total, valid) in levels.items():
            named[name] = pa.array(total[of_span], mask=valid[of_span] == 0)
        yield pa.table(named)
        lower = upper


def _repeated(times: Integers) -> tuple[Integers, Integers]:
    """Each place as often as it says, and the how-manieth time it is."""
    of_place = np.repeat(np.arange(len(times)), times)
    return of_place, np.arange(len(of_place)) - np.repeat(np.cumsum(times) - times, times)


def _numbered(table: pa.Table, keys: Sequence[str]) -> tuple[pa.Table, Integers]:
    """The distinct groups of a table, and which of them each row is of."""
    if not keys:
        return table.slice(0, 1), np.zeros(table.num_rows, np.int64)
    rows = table.select(list(keys)).append_column("row", pa.array(np.arange(table.num_rows)))
    groups = rows.group_by(list(keys), use_threads=False).aggregate([("row", "list")])
    members = groups.column("row_list").combine_chunks()
    number = np.empty(table.num_rows, np.int64)
    sizes = members.value_lengths().to_numpy()
    number[members.flatten().to_numpy()] = np.repeat(np.arange(len(groups)), sizes)
    return groups, number
