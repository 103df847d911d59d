"""The memory tier among other users, and among what they and accidents leave in it."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from braid.record.checkpoint import is_owned
from braid.state.runs import encode
from braid.state.store import MEMORY, RunStore
from braid.worker.memory_tier import claim_memory, reclaim_memory, release_memory
from tests.unit.record.test_checkpoint import opened
from tests.unit.state.making import all_groups, run_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.timeout(30)  # what blocks, fails

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as other users")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can reach."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def root(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A memory tier that everybody may write to."""
    folder = place / "shm"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setenv("BRAID_MEMORY_ROOT", str(folder))
    return folder


def left_by(root: Path, name: str, checkpoint: bytes) -> Path:
    """A run's folder, with the name of its checkpoint."""
    folder = root / f"braid-{name}"
    folder.mkdir()
    (folder / "checkpoint").write_bytes(checkpoint)
    return folder


def fifo(folder: Path) -> None:
    os.mkfifo(folder / "checkpoint")


def link(folder: Path) -> None:
    (folder / "checkpoint").symlink_to("/etc/hostname")


def device(folder: Path) -> None:
    (folder / "checkpoint").symlink_to("/dev/zero")


def inner_folder(folder: Path) -> None:
    (folder / "checkpoint").mkdir()


def says(data: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "checkpoint").write_bytes(data)

    return write


@pytest.mark.parametrize(
    "break_it",
    [
        fifo,
        link,
        device,
        inner_folder,
        says(b""),
        says(b"/a/\0/b"),
        says(b"root:x:0:0:root:/root:/bin/bash\n"),
        says(b"/" * 10_000_000),
    ],
    ids=["fifo", "link", "device", "folder", "empty", "nul", "relative", "long"],
)
def test_a_broken_folder_stops_and_blocks_nobody(
    root: Path, place: Path, break_it: Callable[[Path], None]
) -> None:
    broken = root / "braid-0"
    broken.mkdir()
    break_it(broken)
    dead = left_by(root, "1", bytes(place / "gone"))
    reclaim_memory(place / "own")
    assert broken.exists()
    assert not dead.exists()


def test_a_checkpoint_whose_name_is_no_text_is_reclaimed(root: Path, place: Path) -> None:
    name = bytes(place) + b"/\xff\xfe"
    dead = left_by(root, "0", name)
    held = opened(Path(os.fsdecode(bytes(place) + b"/\xff")))
    living = left_by(root, "1", bytes(held.folder))
    reclaim_memory(place / "own")
    assert not dead.exists()
    assert living.exists()
    held.close()


@pytest.mark.parametrize("name", ["braid-1", "braid-1/checkpoint", "braid-1/executor"])
def test_a_link_is_not_followed(root: Path, place: Path, name: str) -> None:
    victim = place / "victim"
    victim.mkdir()
    (victim / "file").touch()
    (victim / "checkpoint").write_bytes(bytes(place / "gone"))
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).symlink_to(victim)
    reclaim_memory(place / "own")
    if name != "braid-1/checkpoint":
        with pytest.raises(OSError, match="belongs to another user"):
            claim_memory(place / "own", "1", "executor")
    release_memory("1")
    assert sorted(path.name for path in victim.iterdir()) == ["checkpoint", "file"]


def as_nobody(act: Callable[[], object]) -> None:
    """Do something as another user, in a process of its own."""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            act()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


@needs_root
def test_another_users_folder_and_lock_are_left_alone(root: Path, place: Path) -> None:
    held = opened(place / "checkpoint")
    (held.folder / "lock").chmod(0o600)
    living = left_by(root, "0", bytes(held.folder))
    dead = left_by(root, "1", bytes(place / "gone"))
    as_nobody(lambda: reclaim_memory(place / "own"))
    assert living.exists()
    assert dead.exists()
    held.close()


@needs_root
def test_a_lock_that_we_may_not_read_belongs_to_somebody(root: Path, place: Path) -> None:
    held = opened(place / "checkpoint")
    held.close()
    (held.folder / "lock").chmod(0o600)

    def look() -> None:
        assert is_owned(held.folder)
        living = left_by(root, "0", bytes(held.folder))
        reclaim_memory(place / "own")
        assert living.exists()

    as_nobody(look)


@needs_root
def test_a_run_takes_no_folder_that_another_user_has_made(root: Path, place: Path) -> None:
    (root / "braid-1").mkdir()
    os.chown(root / "braid-1", NOBODY, NOBODY)
    with pytest.raises(OSError, match="belongs to another user"):
        claim_memory(place, "1", "executor")


@needs_root
def test_no_other_user_reads_what_a_worker_keeps(root: Path, place: Path) -> None:
    before = os.umask(0)
    try:
        own = claim_memory(place, "1", "executor")
        (own / "0").mkdir()
        store = RunStore({MEMORY: own / "0"}, place, all_groups())
        rows = run_rows([1, 2], [1, 2])
        data = encode(rows)
        store.write(store.describe("run", rows, data), data)
    finally:
        os.umask(before)
    for path in (root / "braid-1", own):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    files = (root / "braid-1" / "checkpoint", own / "pid", own / "0" / "run")
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def look() -> None:
        for path in files:
            with pytest.raises(PermissionError):
                path.read_bytes()

    as_nobody(look)


def test_folders_of_executors_that_are_gone_are_cleared_by_the_next(
    root: Path, place: Path
) -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    for name, pid in (("dead", child), ("living", os.getpid())):
        claim_memory(place, "1", name)
        (root / "braid-1" / name / "pid").write_text(str(pid))
    claim_memory(place, "1", "new")
    assert {path.name for path in (root / "braid-1").iterdir()} == {
        "checkpoint",
        "living",
        "new",
    }
