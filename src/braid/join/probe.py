"""Chaining matches into m-way results.

A *partial* is a set of half-made results: for each stream joined so far, a reference to one of
its rows. Beside them it carries all that the next step needs: the key hash, the youngest
member time M, and the deadline D = min(ts_i + W_i). A row of stream j may join if
`M - W_j <= ts <= D`, which is just `max(ts) - ts_i <= W_i` for every member, old and new.

Invariant: a partial is sorted by key hash, because extending keeps the order of the probes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from braid.join.gather import gather
from braid.join.kernel import expand, locate
from braid.join.keys import equal_keys
from braid.state.runs import Hashes, Times, hashes_of, times_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

MOST_MATCHES = 1 << 21
"""Partials are extended in pieces of about this many rows, which bounds a worker's memory."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a probe may meet of one stream: its runs, this batch's rows among them or not."""

    runs: tuple[pa.RecordBatch, ...]
    window_us: int
    key_columns: tuple[int, ...]  # columns to compare, where a hash may stand for two keys

    def column(self, place: int, rows: NDArray[np.int64]) -> pa.Array:
        """The values of a column at row references."""
        return gather([run.column(place) for run in self.runs], rows)

    def times(self, rows: NDArray[np.int64]) -> Times:
        """The event times at row references."""
        times: Times = self.column(1, rows).to_numpy()
        return times


@dataclass(frozen=True, slots=True)
class Partial:
    """Half-made results; see the module's head for the meaning of its columns."""

    rows: Mapping[int, NDArray[np.int64]]
    hashes: Hashes
    newest: Times
    deadline: Times

    def __len__(self) -> int:
        """How many results are in the making."""
        return len(self.hashes)

    def piece(self, lower: int, upper: int) -> Partial:
        """A contiguous part."""
        return Partial(
            {stream: rows[lower:upper] for stream, rows in self.rows.items()},
            self.hashes[lower:upper],
            self.newest[lower:upper],
            self.deadline[lower:upper],
        )


def start(stream: int, arrived: pa.RecordBatch, window_us: int) -> Partial:
    """The partial of a stream's newly arrived, sorted rows."""
    times = times_of(arrived)
    rows = np.arange(arrived.num_rows, dtype=np.int64)
    return Partial({stream: rows}, hashes_of(arrived), times, times + window_us)


def extend(
    partial: Partial, order: Sequence[int], stored: Mapping[int, Stored]
) -> Iterator[Partial]:
    """Complete results, in pieces: the partial joined with each stream of `order` in turn."""
    if not len(partial):
        return
    if not order:
        yield partial
        return
    stream, *rest = order
    for piece in _matches(partial, stream, stored):
        yield from extend(piece, rest, stored)


def _matches(partial: Partial, stream: int, stored: Mapping[int, Stored]) -> Iterator[Partial]:
    """The partial joined with one more stream, in pieces of bounded size."""
    oldest = partial.newest - stored[stream].window_us
    starts, counts = _locate_all(stored[stream], partial, oldest)
    matched = counts.sum(axis=0)
    ends = np.cumsum(matched)
    lower = 0
    while lower < len(partial):
        done = ends[lower - 1] if lower else 0
        upper = int(np.searchsorted(ends, done + MOST_MATCHES, "right"))
        upper = max(upper, lower + 1)  # one probe's matches are never split
        if ends[upper - 1] > done:
            of_probe, rows = expand(starts[:, lower:upper], counts[:, lower:upper])
            piece = partial.piece(lower, upper)
            yield _joined(piece, of_probe, stream, rows, stored)
        lower = upper


def _locate_all(
    stored: Stored, partial: Partial, oldest: Times
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the probes' matches are in each run, and how many."""
    shape = len(stored.runs), len(partial)
    starts, counts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for number, run in enumerate(stored.runs):
        locate(
            hashes_of(run),
            times_of(run),
            partial.hashes,
            oldest,
            partial.deadline,
            starts[number],
            counts[number],
        )
    return starts, counts


def _joined(
    partial: Partial,
    of_probe: NDArray[np.int64],
    stream: int,
    rows: NDArray[np.int64],
    stored: Mapping[int, Stored],
) -> Partial:
    """The matches as a partial of their own, without those that share a hash but not a key."""
    side = stored[stream]
    if side.key_columns:
        first = next(iter(partial.rows))
        known = partial.rows[first][of_probe]
        same = equal_keys(
            [stored[first].column(c, known) for c in stored[first].key_columns],
            [side.column(c, rows) for c in side.key_columns],
        )
        of_probe, rows = of_probe[same], rows[same]
    times = side.times(rows)
    return Partial(
        {s: r[of_probe] for s, r in partial.rows.items()} | {stream: rows},
        partial.hashes[of_probe],
        np.maximum(partial.newest[of_probe], times),
        np.minimum(partial.deadline[of_probe], times + side.window_us),
    )
