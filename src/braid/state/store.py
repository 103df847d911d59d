"""Where run files live: a memory tier and a disk tier of one worker, with the log behind both.

The store holds no state of record. A run file that is missing or damaged is made again from the
log, so a worker may wake up on any machine; a damaged *log* is an error. Which runs exist is
said by the commit record (`braid.record.checkpoint`), never by what lies in a folder.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from braid.model.errors import DamagedFile, StorageFull
from braid.state.bloom import filter_of
from braid.state.files import PRIVATE, checksum, named_in_full, write_whole
from braid.state.groups import group_of
from braid.state.order import merge_rows
from braid.state.runs import (
    Ladder,
    Section,
    SortedRun,
    decode,
    encode,
    hashes_of,
    known_deadlines,
    times_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from braid.state.bloom import Words
    from braid.state.horizon import Horizon
    from braid.state.log import LogFile

MEMORY, DISK = "memory", "disk"

_verified: set[str] = set()
"""Run files that this process has checked; they never change, so once is enough."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """Which groups a worker holds; rows of other groups in a log section are not its own."""

    groups: int
    owned: NDArray[np.bool_]

    def within(self, section: Section) -> Ownership:
        """What of a section's rows is the owner's."""
        return replace(self, owned=section.counting(self.owned))

    def keep(self, rows: pa.RecordBatch, horizon: Horizon) -> pa.RecordBatch:
        """The rows that belong to the owner and that a future row may still reach."""
        mask = self.owned[group_of(hashes_of(rows), self.groups)]
        living = horizon.living(rows)
        if living is not None:
            mask &= living
        return rows if mask.all() else rows.filter(pa.array(mask))


class OpenRun(NamedTuple):
    """A run with its rows at hand, and the filter of a file on disk."""

    run: SortedRun
    rows: pa.RecordBatch
    filter: Words | None = None


@dataclass(slots=True)
class RunStore:
    """Reads and writes the runs of one worker.

    `tiers` are folders that exist, tried in order when a run is written: what does not fit
    into memory goes to disk. Within `limit_bytes` of memory there is room for work that can
    wait; where there is such a limit, runs on disk are there to stay. If it `is_firm`, all else
    goes to disk too, as long as there is room. The `refusal` says why memory takes no runs:
    there is none, or it is full; `displaced_runs` had to go to disk for that.
    """

    tiers: Mapping[str, Path]
    log: Path
    ownership: Ownership
    limit_bytes: int | None = None
    is_firm: bool = False
    refusal: str = ""
    rebuilt_runs: int = field(default=0, init=False)
    displaced_runs: int = field(default=0, init=False)

    @staticmethod
    def describe(name: str, rows: pa.RecordBatch, data: pa.Buffer) -> SortedRun:
        """What a run of these sorted, non-empty rows will be; no file yet, and no backing."""
        times = times_of(rows)
        return SortedRun(
            file=name,
            tier="",
            length=data.size,
            checksum=checksum(memoryview(data)),
            rows=rows.num_rows,
            oldest_us=int(times.min()),
            newest_us=int(times.max()),
            backing=(),
            until_us=known_deadlines(rows),
        )

    def write(self, run: SortedRun, data: pa.Buffer, tier: str = MEMORY) -> SortedRun:
        """Write a described run's file where there is room, and say where that was.

        On disk it gets a filter, if it is there to stay.
        """
        chunks = [memoryview(data)]
        choices = list(self.tiers) if tier in self.tiers and tier != DISK else [DISK]
        if self.is_firm and not self.has_room(data.size):
            choices.sort(key=lambda each: each != DISK)
        if choices[0] == DISK and self.limit_bytes is not None:
            words = filter_of(hashes_of(decode(data)))
            padding = -data.size % words.itemsize
            chunks += [memoryview(bytes(padding)), words.data.cast("B")]
            run = replace(
                run,
                length=data.size + padding + words.nbytes,
                checksum=checksum(*chunks),
                filter_at=data.size + padding,
            )
        if tier == MEMORY and MEMORY not in self.tiers:
            self.displaced_runs += 1
        found = self._write_where_it_fits(run.file, chunks, choices)
        _verified.add(str(self.tiers[found] / run.file))
        return replace(run, tier=found)

    def install(self, run: SortedRun, data: pa.Buffer) -> SortedRun:
        """Write a run whose encoded rows have arrived, where there is room for it."""
        fresh = replace(self.describe(run.file, decode(data), data), backing=run.backing)
        return self.write(fresh, data, MEMORY if self.has_room(data.size) else DISK)

    def remove(self, run: SortedRun) -> None:
        """Remove a run's file; who has mapped it does not notice."""
        if run.tier in self.tiers:
            path = self.tiers[run.tier] / run.file
            path.unlink(missing_ok=True)
            _verified.discard(str(path))

    def has_room(self, length: int) -> bool:
        """Whether so many bytes more stay within the limit; files that nobody needs count."""
        if self.limit_bytes is None or MEMORY not in self.tiers:
            return True
        with os.scandir(self.tiers[MEMORY]) as files:
            used = sum(file.stat().st_size for file in files)
        return used + length <= self.limit_bytes

    def count_spilled(self, ladder: Ladder) -> int:
        """How many runs, which come first, were put on disk for want of room within a limit."""
        if self.limit_bytes is None:
            return 0
        return next((n for n, run in enumerate(ladder) if run.tier != DISK), len(ladder))

    def _write_where_it_fits(
        self, name: str, chunks: Sequence[memoryview], choices: Sequence[str]
    ) -> str:
        *first, last = choices
        for tier in first:
            try:
                self._write_file(tier, name, chunks)
            except StorageFull as full:
                if tier == MEMORY:
                    self.displaced_runs += 1
                    self.refusal = full.message
                continue
            return tier
        self._write_file(last, name, chunks)
        return last

    def _write_file(self, tier: str, name: str, chunks: Sequence[memoryview]) -> None:
        write_whole(self.tiers[tier] / name, *chunks, durable=False, mode=PRIVATE)

    def open(self, run: SortedRun, horizon: Horizon) -> OpenRun | None:
        """Map a run, or make it again from the log; None if nothing of it is alive any more.

        The answer's `SortedRun` describes the file that is there now.
        """
        return self.find(run) or self._rebuild(run, horizon.of(run))

    def find(self, run: SortedRun) -> OpenRun | None:
        """Map a run, if its file is there and undamaged."""
        data = self._read(run)
        if data is None:
            return None
        words = None
        if run.filter_at:
            words = np.frombuffer(data, np.uint64, offset=run.filter_at)
        return OpenRun(run, decode(data), words)

    def read_rows(self, run: SortedRun) -> pa.Buffer | None:
        """A run's rows as they are encoded, if its file is there and undamaged."""
        data = self._read(run)
        return None if data is None else data.slice(0, run.filter_at or run.length)

    def _read(self, run: SortedRun) -> pa.Buffer | None:
        """The bytes of a run's file, if it is there and undamaged."""
        path = str(self.tiers[run.tier] / run.file) if run.tier in self.tiers else ""
        try:
            data = pa.memory_map(path).read_buffer()
        except FileNotFoundError:
            return None
        # Length before contents: reading past the end of a truncated map is a SIGBUS.
        if data.size != run.length:
            return None
        if path not in _verified:
            if checksum(memoryview(data)) != run.checksum:
                return None
            _verified.add(path)
        return data

    def _rebuild(self, run: SortedRun, horizon: Horizon) -> OpenRun | None:
        parts = [
            self.ownership.within(section).keep(read_section(self.log, section), horizon)
            for section in run.backing
        ]
        parts = [part for part in parts if part.num_rows]
        self.rebuilt_runs += 1
        if not parts:
            return None
        rows = merge_rows(parts)
        data = encode(rows)
        fresh = replace(self.describe(run.file, rows, data), backing=run.backing)
        return OpenRun(self.write(fresh, data, run.tier or MEMORY), rows)

    def remove_others(self, wanted: Collection[str]) -> None:
        """Remove all files but those of these names; one may just be being written."""
        for folder in self.tiers.values():
            for path in folder.iterdir():
                if named_in_full(path.name) not in wanted:
                    path.unlink(missing_ok=True)
                    _verified.discard(str(path))


def log_rows(log: LogFile, rows: pa.RecordBatch) -> Section:
    """Rows that a log keeps, in the form of a run."""
    data = encode(rows)
    return log.add(RunStore.describe("", rows, data), data)


def read_section(log: Path, section: Section) -> pa.RecordBatch:
    """The rows of a log section, once its bytes are known to be those that were written."""
    path = log / section.file
    return decode(pa.py_buffer(section_bytes(path, section)))


def section_bytes(path: Path, section: Section) -> memoryview:
    """The bytes of a section; damage is an error here, for there is nothing behind the log."""
    hint = "restore this file from a copy, or start again with a new checkpoint folder"
    try:
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise DamagedFile(str(path), "it is missing", hint=hint) from None
    except OSError as error:
        finding = f"it cannot be read ({error.strerror})"
        raise DamagedFile(str(path), finding, hint=hint) from None
    except ValueError:  # an empty file cannot be mapped
        raise DamagedFile(str(path), "it is empty", hint=hint) from None
    upper = section.offset + section.length
    if len(mapped) < upper:
        found = f"it ends after {len(mapped):,} bytes, before byte {upper:,}"
        raise DamagedFile(str(path), found, hint=hint)
    data = memoryview(mapped)[section.offset : upper]
    if checksum(data) != section.checksum:
        raise DamagedFile(str(path), "its checksum does not match its bytes", hint=hint)
    return data
