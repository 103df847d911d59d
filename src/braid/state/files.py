"""Writing files that are whole or absent, and knowing damage when we read.

Every file of a checkpoint, and every run, is written under a name of its own and never changed,
so a reader may map it without fear. Names appear only by rename: a crash leaves at most a
temporary file, which `braid.record.checkpoint` sweeps.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import xxhash

from braid.model.errors import BraidError, StorageFull

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PENDING = ".pending"
"""Suffix of a file that is still being written; one that a crash left may be removed."""


PRIVATE = 0o600
"""The mode of a file that its owner alone may read."""


def checksum(*chunks: bytes | memoryview) -> str:
    """A 64-bit digest of some bytes, in hexadecimal; it finds damage, not forgery."""
    digest = xxhash.xxh3_64()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def named_in_full(name: str) -> str:
    """The name that a file will have once it is whole."""
    return name.rsplit(".", 2)[0] if name.endswith(PENDING) else name


@contextmanager
def room_in(folder: Path | str) -> Iterator[None]:
    """Turn "no space left" and "may not" inside the block into errors that name the place."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(
                f"no space left in {folder}",
                hint="free some space there and start again: nothing was lost",
            ) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR):
            raise BraidError(
                f"cannot write to {folder}: {error.strerror}",
                hint="give a folder that you may write to, and start again",
            ) from None
        raise


def write_whole(
    path: Path, *chunks: bytes | memoryview, durable: bool, mode: int = 0o666
) -> None:
    """Write a file so that it is there with all of its bytes, or not there at all.

    With `durable` it also survives a power cut once this returns. The umask narrows the `mode`.
    """
    pending = path.with_name(f"{path.name}.{os.getpid()}{PENDING}")
    with room_in(path.parent):
        try:
            with open(pending, "wb", opener=partial(os.open, mode=mode)) as file:
                file.writelines(chunks)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(pending, path)
        except OSError:
            pending.unlink(missing_ok=True)
            raise
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
