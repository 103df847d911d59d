"""The durable log: per batch and worker one file, made of sections.

A section holds the very bytes of a run, so that making a lost run again needs no conversion.
The checksums are not in the file: the commit record names each section with its checksum, and a
section that no commit names does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from braid.state.files import write_whole
from braid.state.runs import Section, SortedRun

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_ALIGNMENT = 64  # Arrow's own: a section that starts on it is read without a copy


@dataclass(slots=True)
class LogFile:
    """A log file in the making: sections are added, then all is written at once."""

    path: Path
    _chunks: list[bytes | memoryview] = field(default_factory=list)
    _length: int = 0

    def add(self, run: SortedRun, data: pa.Buffer) -> Section:
        """Append a run's bytes; the section may be committed once `write` has returned."""
        padding = -self._length % _ALIGNMENT
        offset = self._length + padding
        self._chunks += [bytes(padding), memoryview(data)]
        self._length = offset + data.size
        return Section(self.path.name, offset, data.size, run.checksum, run.rows)

    def write(self) -> None:
        """Make all sections durable; a log file without sections is not written."""
        if self._chunks:
            write_whole(self.path, *self._chunks, durable=True)
