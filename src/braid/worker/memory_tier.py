"""The memory tier of a host: a folder for each run, which only its user can look into.

    /dev/shm/braid-INCARNATION/   of one run, mode 0700
        checkpoint                where its checkpoint is
        EXECUTOR/pid              a process that lives as long as the executor
        EXECUTOR/WORKER/          the runs of a worker

`BRAID_MEMORY_ROOT` names another place than `/dev/shm`. Everybody on the host may write there.
So a folder counts only if it belongs to the user who asks, and a file in it only if it is a
short and regular one: no link is followed, and nothing is waited for.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from braid.model.errors import BraidError
from braid.record.checkpoint import is_owned
from braid.state.files import PRIVATE, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "braid-"
_CHECKPOINT, _PID = "checkpoint", "pid"
_LONGEST = 4096  # bytes of a path


def memory_root() -> Path:
    """Where this host's memory tier is."""
    return Path(os.environ.get("BRAID_MEMORY_ROOT", "/dev/shm"))


def claim_memory(checkpoint: Path, incarnation: str, executor: str) -> Path:
    """The folder of one of a run's executors, made for this user alone if need be."""
    shared = _shared(incarnation)
    own = shared / executor
    try:
        is_new = not (own / _PID).exists()
        _make_private(shared)
        _make_private(own)
        if is_new:
            _sign(shared, own, checkpoint)
    except (OSError, BraidError):
        for folder in (own, shared):
            with suppress(OSError):
                folder.rmdir()  # what is empty
        raise
    return own


def _sign(shared: Path, own: Path, checkpoint: Path) -> None:
    """Note whose the folders are; what is left of dead runs and executors is cleared."""
    write_whole(shared / _CHECKPOINT, os.fsencode(checkpoint), durable=False, mode=PRIVATE)
    reclaim_memory(checkpoint, living=shared)
    for sibling in _own_folders(shared):
        if sibling != own and _runs(sibling) is False:
            shutil.rmtree(sibling, ignore_errors=True)
    # The parent of a Python worker lives as long as its executor.
    write_whole(own / _PID, str(os.getppid()).encode(), durable=False, mode=PRIVATE)


def reclaim_memory(own: Path, living: Path | None = None) -> None:
    """Remove what dead runs left in this host's memory: nobody holds their checkpoint.

    The caller's run holds the checkpoint `own`, so whatever is there of it is of the dead too,
    except for the folder of its own, `living`. Of others, an executor may be alive though this
    host does not see the lock of its driver.
    """
    for shared in _own_folders(memory_root(), _PREFIX):
        checkpoint = _checkpoint_of(shared)
        if checkpoint is None or shared == living:
            continue  # it may just be being made, or not be ours
        if checkpoint == own or not (
            is_owned(checkpoint) or any(map(_runs, _own_folders(shared)))
        ):
            shutil.rmtree(shared, ignore_errors=True)


def release_memory(incarnation: str) -> None:
    """Remove what this run kept in memory on this host."""
    shutil.rmtree(_shared(incarnation), ignore_errors=True)


def _shared(incarnation: str) -> Path:
    return memory_root() / f"{_PREFIX}{incarnation}"


def _make_private(folder: Path) -> None:
    """Make a folder that nobody else can look into, or know that it is one."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not _is_own_folder(found):
        raise PermissionError(errno.EPERM, "it belongs to another user", str(folder))
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)


def _own_folders(root: Path, prefix: str = "") -> Iterator[Path]:
    """The folders in a folder that belong to this user; a link is none."""
    with suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with suppress(FileNotFoundError):
                    if _is_own_folder(entry.stat(follow_symlinks=False)):
                        yield root / entry.name


def _is_own_folder(found: os.stat_result) -> bool:
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _checkpoint_of(shared: Path) -> Path | None:
    """Where the checkpoint of a run is, if its folder tells."""
    path = _short_file(shared / _CHECKPOINT)
    if not path or not path.startswith(b"/") or b"\0" in path:
        return None
    return Path(os.fsdecode(path))


def _runs(executor: Path) -> bool | None:
    """Whether the executor of a folder is alive; None if the folder does not tell."""
    try:
        os.kill(int(_short_file(executor / _PID) or b""), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    except (ValueError, OverflowError):
        return None
    return True


def _short_file(path: Path) -> bytes | None:
    """The bytes of a regular file of this user, if there is one and it is short."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return None
        data = os.read(handle, _LONGEST + 1)
        return data if len(data) <= _LONGEST else None
    finally:
        os.close(handle)
