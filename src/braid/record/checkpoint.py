"""The checkpoint folder: identity, lock, commit records and the log.

    braid.json      what this checkpoint is of: the query, its columns, the number of groups
    lock            held by the process that runs the query
    commits/N.json  the commit record of batch N; the newest is the truth
    log/            the sections that it names
    orders/         what workers are told about the batch at hand; nothing to keep
    published.json  the last batch whose results the sink has taken
    read.jsonl      the files read so far, where Braid reads folders itself
    columns.json    the columns of these files, which outlive the first of them
    spark/          Spark's own offsets, where Spark reads the sources

It holds JSON and Arrow only. Nothing from it is ever unpickled or evaluated.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import time
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from braid.model.errors import CheckpointError, DamagedFile
from braid.record.commit import BEFORE_FIRST, Commit
from braid.state.files import PENDING, checksum, room_in, write_whole
from braid.state.store import section_bytes
from braid.state.trust import checked_depth, checked_name

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT = 5
_NEW_FOLDER = "give a new folder to --checkpoint to start from the beginning"
_NOUNS = {
    "query": "query",
    "columns": "set of columns",
    "groups": "number of groups",
    "zone": "time zone",
}
_TAIL = b"}\n"
_LOCK = "lock"
_PUBLISHED = "published.json"
_COLUMNS = "columns.json"
_MOST_BYTES = 1 << 30  # of a record; those of thousands of runs have a few million
_COMMIT_NAME = re.compile(r"-?\d+\.json")
_LOCK_TRIES, _LOCK_PAUSE_S = 5, 0.1  # others may test the lock for an instant


@dataclass(frozen=True, slots=True)
class Identity:
    """What a checkpoint belongs to; a run with another identity may not continue it.

    Checkpoints of older versions do not tell the `zone` that their results depend on.
    """

    query: str
    columns: str
    groups: int
    zone: str = ""


@dataclass(slots=True)
class Checkpoint:
    """An open checkpoint; the lock is held until `close`, or until the process ends."""

    folder: Path
    id: str
    _lock: int

    @property
    def log(self) -> Path:
        """The folder of log files."""
        return self.folder / "log"

    @property
    def orders(self) -> Path:
        """The folder of what workers are told about the batches at hand."""
        return self.folder / "orders"

    @property
    def _commits(self) -> Path:
        return self.folder / "commits"

    @classmethod
    def open(cls, folder: Path, identity: Identity, first: Commit) -> Checkpoint:
        """Open a checkpoint, or make a new one that starts with the record `first`."""
        _refuse_foreign(folder)
        with room_in(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock = _lock(folder / _LOCK)
        try:
            checkpoint = cls(folder, _identify(folder, identity, first), lock)
            with room_in(folder):
                for emptied in (checkpoint.log, checkpoint.orders):  # a copy may lack them
                    emptied.mkdir(exist_ok=True)
            return checkpoint
        except BaseException:
            os.close(lock)
            raise

    def withdraw_orders(self) -> None:
        """Have tasks that begin though nobody waits for them any more find no orders."""
        shutil.rmtree(self.orders, ignore_errors=True)

    def close(self) -> None:
        """Let others have the checkpoint."""
        os.close(self._lock)
        self._lock = -1  # nothing is written any more

    def last_commit(self) -> Commit:
        """The newest commit record, once all that it names has been found undamaged."""
        path = self._newest()
        try:
            commit = Commit.from_json(read_sealed(path))
            needed = commit.sections()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _damaged(path, f"it is not a commit record ({error})") from None
        if commit.batch != int(path.stem):
            raise _damaged(path, f"it is the record of batch {commit.batch!r}")
        for section in needed:
            section_bytes(self.log / section.file, section)
        return commit

    def _newest(self) -> Path:
        records = list(self._commits.glob("*.json"))
        for path in records:
            if not _COMMIT_NAME.fullmatch(path.name):
                raise _damaged(path, "its name is not that of a commit record")
        if not records:
            raise _damaged(self._commits, "its commit record is missing")
        return max(records, key=lambda path: int(path.stem))

    def write(self, commit: Commit) -> None:
        """Make a commit record the newest one; others must not have the checkpoint by now."""
        self._check_lock()
        _write_commit(self.folder, commit)

    def _check_lock(self) -> None:
        """Refuse to go on without the lock that was taken: another run may have the new one."""
        try:
            if os.path.samestat(os.fstat(self._lock), os.stat(self.folder / _LOCK)):
                return
        except OSError:
            pass  # it is gone
        raise CheckpointError(
            f"the lock of the checkpoint {self.folder} was removed while a run held it",
            hint="leave the file alone; once no other run is on this checkpoint, start again: "
            "nothing was lost",
        )

    @property
    def names(self) -> Path:
        """The list of files read."""
        return self.folder / "read.jsonl"

    def note_columns(self, columns: dict[str, Any]) -> None:
        """Note the columns of each stream's files, for the runs that go on."""
        path = self.folder / _COLUMNS
        if not path.exists() or read_sealed(path) != columns:
            write_sealed(path, columns)

    @property
    def spark(self) -> Path:
        """The folder of Spark's own part."""
        return self.folder / "spark"

    def offsets_checksum(self, batch: int) -> str | None:
        """A checksum of the offsets that Spark has for a batch; None if it has none."""
        try:
            return checksum((self.spark / "offsets" / str(batch)).read_bytes())
        except FileNotFoundError:
            return None

    def check_offsets(self, commit: Commit) -> None:
        """Demand that Spark goes on behind the last batch that it brought.

        If its part were older, it would give other rows the numbers of committed batches; and
        those count as batches that come again after a crash.
        """
        batch = commit.source_batch
        if batch == BEFORE_FIRST:
            return
        found = self.offsets_checksum(batch)
        if found is None:
            finding = f"does not have batch {batch}, which the checkpoint has committed"
        elif found != (commit.source_checksum or found):
            finding = f"has another batch {batch} than the checkpoint has committed"
        else:
            return
        raise CheckpointError(
            f"Spark's part of the checkpoint, {self.spark}, {finding}",
            hint="restore the whole checkpoint folder from one copy",
        )

    def is_published(self, batch: int) -> bool:
        """Whether the sink has taken the results of the newest batch.

        The note of a later one is of another copy: later batches would never be shown.
        """
        path = self.folder / _PUBLISHED
        published = read_sealed(path).get("batch")
        if not isinstance(published, int):
            raise _damaged(path, "it does not name a batch")
        if published > batch:
            raise CheckpointError(
                f"{path} notes that the results of batch {published} were shown, but the "
                f"checkpoint ends with batch {batch}",
                hint="restore the whole checkpoint folder from one copy",
            )
        return published == batch

    def note_published(self, batch: int) -> None:
        """Note that the sink has taken a batch's results; they may be cleared away then."""
        _write_published(self.folder, batch)

    def sweep(self, commit: Commit) -> None:
        """Remove what the newest commit record does not need."""
        needed = {section.file for section in commit.sections()}
        for path in self.log.iterdir():
            if path.name not in needed:
                path.unlink(missing_ok=True)
        for path in self._commits.iterdir():
            if path.name != _commit_name(commit.batch):
                path.unlink(missing_ok=True)
        for path in self.orders.iterdir():
            path.unlink(missing_ok=True)


def sealed_columns(folder: Path) -> dict[str, Any]:
    """The columns of each stream's files, as noted in a checkpoint that need not be open.

    There are none in an older checkpoint. Without a batch they do not count: the first file
    may have been mended since.
    """
    path = folder / _COLUMNS
    begun = {each.name for each in folder.glob("commits/*.json")} - {_commit_name(BEFORE_FIRST)}
    return read_sealed(path) if begun and path.exists() else {}


def read_sealed(path: Path) -> dict[str, Any]:
    """The JSON object in a file that `write_sealed` wrote, if not one bit has changed."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise _damaged(path, "it cannot be read (it is no regular file)")
        if about.st_size > _MOST_BYTES:
            raise _damaged(path, f"it has {about.st_size:,} bytes, more than any record")
        data = path.read_bytes()
    except FileNotFoundError:
        raise _damaged(path, "it is missing") from None
    except OSError as error:
        raise _damaged(path, f"it cannot be read ({error.strerror})") from None
    body = data[len(_seal(b"")) - len(_TAIL) : -len(_TAIL)]
    if data != _seal(body):
        raise _damaged(path, "its checksum does not match its contents")
    try:
        found = json.loads(body)
        checked_depth(found)
    except RecursionError:
        raise _damaged(path, "it is nested too deep") from None
    except (TypeError, ValueError) as error:
        raise _damaged(path, f"it is not a record ({error})") from None
    if not isinstance(found, dict):
        raise _damaged(path, "it is not a JSON object")
    return found


def write_sealed(path: Path, body: dict[str, Any]) -> None:
    """Write a JSON object with its checksum, durably."""
    write_whole(path, sealed(body), durable=True)


def sealed(body: dict[str, Any]) -> bytes:
    """A JSON object with its checksum, as one line."""
    return _seal(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())


def _seal(body: bytes) -> bytes:
    return b'{"checksum":"%s","body":' % checksum(body).encode() + body + _TAIL


def _damaged(path: Path, finding: str) -> DamagedFile:
    return DamagedFile(str(path), finding, hint=f"restore it from a copy, or {_NEW_FOLDER}")


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder that something else lives in."""
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"{folder} is a file, not a checkpoint folder", hint=_NEW_FOLDER)
    if folder.is_dir() and not (folder / "braid.json").exists():
        if {path.name for path in folder.glob("commits/*.json")} - {_commit_name(BEFORE_FIRST)}:
            raise _damaged(folder / "braid.json", "it is missing")
        # A first start that was cut off leaves only these behind.
        strangers = {path.name for path in folder.iterdir()} - {
            _LOCK,
            "commits",
            "log",
            "orders",
            _PUBLISHED,
        }
        strangers = {name for name in strangers if not name.endswith(PENDING)}
        if strangers:
            raise CheckpointError(
                f"{folder} is not a Braid checkpoint: it has {sorted(strangers)[0]!r} "
                "but no braid.json",
                hint=_NEW_FOLDER,
            )


def _lock(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_S)
        else:
            return handle
    os.close(handle)
    raise CheckpointError(
        f"the checkpoint {path.parent} is in use by a running process",
        hint="stop that run first, or give another folder to --checkpoint",
    )


def is_owned(folder: Path) -> bool:
    """Whether some process may run on this checkpoint.

    A folder that is gone belongs to nobody; one that does not let us look, to somebody.
    """
    try:
        handle = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _identify(folder: Path, identity: Identity, first: Commit) -> str:
    """The checkpoint's id, once it is known to be ours; a new checkpoint gets one."""
    path = folder / "braid.json"
    if not path.exists():
        return _create(folder, identity, first)
    known = read_sealed(path)
    if known.get("format") != _FORMAT:
        raise CheckpointError(
            f"the checkpoint {folder} has format {known.get('format')}, and this Braid reads "
            f"format {_FORMAT}",
            hint=f"run it with the Braid that made it, or {_NEW_FOLDER}",
        )
    for name, ours in asdict(identity).items():
        if known.get(name) != ours and (name in known or name != "zone"):
            raise CheckpointError(
                f"the checkpoint {folder} was made with another {_NOUNS.get(name, name)}:\n"
                f"  it was {known.get(name)}\n  now is {ours}",
                hint=f"run it with what it was made with, or {_NEW_FOLDER}",
            )
    try:
        return checked_name(known.get("id"))
    except ValueError as error:
        raise _damaged(path, f"its id is none ({error})") from None


def _create(folder: Path, identity: Identity, first: Commit) -> str:
    with room_in(folder):
        (folder / "commits").mkdir(exist_ok=True)
    _write_commit(folder, first)
    _write_published(folder, first.batch)
    name = uuid.uuid4().hex[:16]
    # Last: a folder without it is no checkpoint yet.
    write_sealed(folder / "braid.json", {"format": _FORMAT, "id": name, **asdict(identity)})
    return name


def _write_commit(folder: Path, commit: Commit) -> None:
    write_sealed(folder / "commits" / _commit_name(commit.batch), commit.to_json())


def _write_published(folder: Path, batch: int) -> None:
    write_sealed(folder / _PUBLISHED, {"batch": batch})


def _commit_name(batch: int) -> str:
    return f"{batch}.json"
