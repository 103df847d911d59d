"""The names of the files that have been read: a list that only grows.

A batch's names are appended, durably, before the commit record that counts them; the record
says how many bytes of the list are true, and their checksum. What lies behind was appended
for a batch that never was, and is cut off by the next run.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import xxhash

from braid.model.errors import DamagedFile
from braid.state.files import room_in, sync_folder
from braid.state.trust import checked_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Position = dict[str, Any]
"""How much of the list a commit record vouches for."""


_HINT = (
    "restore it from a copy, or give a new folder to --checkpoint to start from the beginning"
)


@dataclass(slots=True)
class NameList:
    """The list, open for appending; `read` holds each stream's names."""

    path: Path
    read: dict[str, set[str]] = field(default_factory=dict)
    _length: int = 0
    _digest: xxhash.xxh3_64 = field(default_factory=xxhash.xxh3_64)

    @classmethod
    def open(cls, path: Path, position: Position | None) -> NameList:
        """Take up the list where a commit record left it."""
        names = cls(path)
        if position is None:
            names._truncate()
            return names
        try:
            data = path.read_bytes()[: checked_size(position["length"])]
        except (FileNotFoundError, KeyError, TypeError, ValueError):
            data = b""
        names._count(data)
        if names._position() != position:
            raise DamagedFile(
                str(path),
                "its checksum does not match its contents"
                if data
                else "it is missing or empty",
                hint=_HINT,
            )
        try:
            for line in data.splitlines():
                names._remember(json.loads(line))
        except (AttributeError, RecursionError, TypeError, ValueError):
            raise DamagedFile(str(path), "it is not a list of files", hint=_HINT) from None
        names._truncate()
        return names

    def append(self, taken: Mapping[str, Sequence[str]]) -> Position:
        """Note files as read; it counts once a commit record names the position returned."""
        line = json.dumps(taken, separators=(",", ":")).encode() + b"\n"
        with room_in(self.path.parent), open(self.path, "r+b") as file:
            file.seek(self._length)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._count(line)
        self._remember(taken)
        return self._position()

    def _remember(self, taken: Mapping[str, Sequence[str]]) -> None:
        for stream, names in taken.items():
            self.read.setdefault(stream, set()).update(names)

    def _count(self, data: bytes) -> None:
        self._length += len(data)
        self._digest.update(data)

    def _position(self) -> Position:
        return {"length": self._length, "checksum": self._digest.hexdigest()}

    def _truncate(self) -> None:
        with room_in(self.path.parent):
            with open(self.path, "ab") as file:
                file.truncate(self._length)
            sync_folder(self.path.parent)
