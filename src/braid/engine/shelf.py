"""The files that are read next: a shelf of names, which a run that follows folders restocks.

How files are read is in `braid.spark.files`; which ones have been read, the checkpoint knows
(`braid.record.names`).
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from braid.engine.is_complete import is_complete

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from braid.engine.folder import FileStream


@dataclass(slots=True)
class Shelf:
    """The files of all streams that are still to be read, in the order of their names.

    A run reads the files that are there when it starts. If it follows the folders, it lists
    them again and again, and reads whatever has come and is complete. A file that has come
    since an earlier listing is read now, wherever its name sorts.
    """

    streams: Mapping[str, FileStream]
    left: Mapping[str, deque[str]]
    known: Mapping[str, set[str]]
    follows: bool = False
    listed_bytes: int = 0  # of all files that were ever on the shelf
    _sizes: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def browse(
        cls,
        streams: Mapping[str, FileStream],
        read: Mapping[str, Collection[str]],
        *,
        follows: bool = False,
    ) -> Shelf:
        """List the folders, without the files that earlier runs have read.

        A shelf that follows them is empty until it is restocked.
        """
        left: dict[str, deque[str]] = {source: deque() for source in streams}
        known = {source: set(read.get(source, ())) for source in streams}
        shelf = cls(streams, left, known, follows)
        if not follows:
            for source, name in shelf._strangers():
                shelf._add(source, name)
        return shelf

    def restock(self, now_s: float) -> list[tuple[str, str]]:
        """Add the files that have come since; return half-written ones, by stream.

        The files behind such a one wait for it, for they are read in order.
        """
        waiting: dict[str, str] = {}
        for source, name in self._strangers():
            if source in waiting:
                continue
            if is_complete(self.streams[source].path(name), now_s):
                self._add(source, name)
            else:
                waiting[source] = name
        return list(waiting.items())

    def _strangers(self) -> list[tuple[str, str]]:
        """Streams and names of files that are not known yet, in order."""
        return [
            (source, name)
            for source, stream in self.streams.items()
            for name in stream.names()
            if name not in self.known[source]
        ]

    def _add(self, source: str, name: str) -> None:
        self.left[source].append(name)
        self.known[source].add(name)
        size = _size(self.streams[source].path(name))
        self._sizes[source, name] = size
        self.listed_bytes += size

    def size(self, taken: Mapping[str, Collection[str]]) -> int:
        """The bytes of files that were taken, as they were when the folders were listed."""
        return sum(
            self._sizes[source, name] for source, names in taken.items() for name in names
        )

    def take(self) -> dict[str, list[str]]:
        """Take the next files of each stream off the shelf."""
        return {
            source: [
                names.popleft()
                for _ in range(min(self.streams[source].files_per_batch, len(names)))
            ]
            for source, names in self.left.items()
        }

    def is_empty(self) -> bool:
        """Whether all files have been taken."""
        return not any(self.left.values())


def _size(path: str) -> int:
    """A file's bytes; one that is gone meanwhile is told of when its turn comes."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
