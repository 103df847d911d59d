"""Runs and the log sections behind them, as values; their bytes, as Arrow.

A run's bytes are one Arrow IPC stream with one record batch. Its first two columns are the key
hash (uint64) and the event time (int64, microseconds), and its rows are sorted by the two; the
stored columns follow. Where run files live is `braid.state.store`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from braid.state.groups import Hashes, group_counts, ranges_of
from braid.state.trust import checked_name, checked_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HASH, TIME = 0, 1
"""The places of the two columns that every run has."""

DEADLINE = "column -1 until"
"""The name of the column of joined rows that has their deadlines."""

DEADLINE_PARTS = 8
"""Into so many equal parts the known deadlines of a run divide its rows."""

_DEADLINE_SAMPLE = 4096  # rows, at least, if there are as many
_STREAM_END = 64  # bytes, and more than it takes

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Section:
    """A byte range of a log file that holds one run's worth of one stream's rows.

    `without` are half-open ranges of groups whose rows in the file do not count any more: they
    live on elsewhere, and whoever reads the section must leave them there.
    """

    file: str
    offset: int
    length: int
    checksum: str
    rows: int
    without: tuple[tuple[int, int], ...] = ()

    def to_json(self) -> list[Any]:
        """The section as a JSON array."""
        fixed = [self.file, self.offset, self.length, self.checksum, self.rows]
        return [*fixed, [list(ends) for ends in self.without]] if self.without else fixed

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Section:
        """The inverse of `to_json`."""
        file, offset, length, checksum, rows, *others = data
        return cls(
            checked_name(file),
            checked_size(offset),
            checked_size(length),
            checksum,
            checked_size(rows),
            *(tuple(map(tuple, without)) for without in others),
        )

    def lacking(self, groups: NDArray[np.bool_]) -> Section:
        """The same bytes, in which the rows of these groups too do not count any more."""
        return replace(self, without=ranges_of(~self.counting(~groups)))

    def counting(self, owned: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of the groups that someone owns, those whose rows in this section count."""
        counts = owned.copy()
        for lower, upper in self.without:
            counts[lower:upper] = False
        return counts


@dataclass(frozen=True, slots=True)
class SortedRun:
    """An immutable sorted batch of one stream's rows, and what to make it from if it is lost.

    Invariant: the live rows of the run are the live rows of its sections that belong to the
    worker's groups. It may lack rows that its sections have, if no future row can reach them.
    Behind its rows, a file on disk has a filter of their key hashes, at `filter_at`. Of joined
    rows, `until_us` are the deadlines of the first and the last, and about those in between
    which divide them into equal parts; runs that older versions wrote have none.
    """

    file: str
    tier: str
    length: int
    checksum: str
    rows: int
    oldest_us: int
    newest_us: int
    backing: tuple[Section, ...]
    filter_at: int = 0
    until_us: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The run as a JSON object."""
        return {
            "file": self.file,
            "tier": self.tier,
            "length": self.length,
            "checksum": self.checksum,
            "rows": self.rows,
            "oldest_us": self.oldest_us,
            "newest_us": self.newest_us,
            "backing": [section.to_json() for section in self.backing],
            "filter_at": self.filter_at,
            "until_us": list(self.until_us),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SortedRun:
        """The inverse of `to_json`."""
        checked_name(data["file"])
        for size in ("length", "rows", "filter_at"):
            checked_size(data[size])
        backing = tuple(Section.from_json(section) for section in data["backing"])
        until_us = tuple(data.get("until_us", ()))
        return cls(**{**data, "backing": backing, "until_us": until_us})

    @property
    def span_us(self) -> int:
        """How much event time the run covers."""
        return self.newest_us - self.oldest_us


Ladder = tuple[SortedRun, ...]
"""The runs of one stream on one worker, oldest first."""


def sections_of(ladders: Iterable[Ladder]) -> set[Section]:
    """All log sections that some run needs."""
    return {section for ladder in ladders for run in ladder for section in run.backing}


def hashes_of(rows: pa.RecordBatch) -> Hashes:
    """The key hashes of a run's rows, without a copy."""
    hashes: Hashes = rows.column(HASH).to_numpy(zero_copy_only=True)
    return hashes


def times_of(rows: pa.RecordBatch) -> Times:
    """The event times of a run's rows in microseconds, without a copy."""
    times: Times = rows.column(TIME).to_numpy(zero_copy_only=True)
    return times


def deadlines_of(rows: pa.RecordBatch) -> Times | None:
    """The deadlines of joined rows, without a copy; other rows have none."""
    place = rows.schema.get_field_index(DEADLINE)
    if place < 0:
        return None
    deadlines: Times = rows.column(place).to_numpy(zero_copy_only=True)
    return deadlines


def known_deadlines(rows: pa.RecordBatch) -> tuple[int, ...]:
    """The deadlines that divide joined rows into equal parts; the first and last are exact.

    Rows of a run come in the order of their hashes, so every n-th of them is a fair sample.
    """
    deadlines = deadlines_of(rows)
    if deadlines is None:
        return ()
    sample = np.sort(deadlines[:: max(1, len(deadlines) // _DEADLINE_SAMPLE)])
    places = np.arange(DEADLINE_PARTS + 1) * (len(sample) - 1) // DEADLINE_PARTS
    _, *between, _ = sample[places].tolist()
    return (int(deadlines.min()), *between, int(deadlines.max()))


def of_groups(rows: pa.RecordBatch, groups: NDArray[np.bool_]) -> pa.RecordBatch:
    """Of sorted rows, those of the groups that are marked: a slice for each range of groups."""
    ends = np.cumsum(group_counts(hashes_of(rows), len(groups)))
    places = [0, *ends.tolist()]
    slices = [
        rows.slice(places[first], places[end] - places[first])
        for first, end in ranges_of(groups)
        if places[end] > places[first]
    ]
    if len(slices) > 1:
        return pa.concat_batches(slices)
    return slices[0] if slices else rows.slice(0, 0)


def encode(rows: pa.RecordBatch) -> pa.Buffer:
    """A record batch as the bytes of an Arrow IPC stream."""
    # Of the size that is needed: a buffer that grows is copied each time.
    most = rows.schema.serialize().size + pa.ipc.get_record_batch_size(rows) + _STREAM_END
    buffer = pa.allocate_buffer(most)
    with pa.FixedSizeBufferWriter(buffer) as sink:
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows)
        return buffer.slice(0, sink.tell())


def decode(data: pa.Buffer) -> pa.RecordBatch:
    """The record batch inside an encoded run, pointing into `data`."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()
