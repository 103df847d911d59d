"""The memory tier of real runs: private, and not stopped by what others leave beside it."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import braid
from braid.worker.memory_tier import memory_root
from tests.spark.kill_workloads import ONE_KEY
from tests.spark.test_cluster import in_own_process
from tests.spark.test_overflow import FILES, Place
from tests.unit.state.making import small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from braid.events import Event

pytestmark = pytest.mark.spark


@contextmanager
def hostile_folders(checkpoint: Path) -> Iterator[list[Path]]:
    """What other users and accidents may leave in the real memory of this machine."""
    names = ("fifo", "nul", "other", "link")
    folders = [memory_root() / f"braid-test-{name}-{os.getpid()}" for name in names]
    fifo, nul, other, link = folders
    try:
        for folder in (fifo, nul, other):
            folder.mkdir()
        os.mkfifo(fifo / "checkpoint")
        (nul / "checkpoint").write_bytes(b"/\0\xff")
        (other / "checkpoint").write_text(str(checkpoint))
        link.symlink_to("/etc")
        if os.geteuid() == 0:
            os.chown(other, 65534, 65534)
        yield folders if os.geteuid() == 0 else [fifo, nul, link]
    finally:
        link.unlink()
        for folder in (fifo, nul, other):
            shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.timeout(120)
def test_a_run_among_hostile_folders_goes_on_and_shows_nobody_its_state(
    spark: SparkSession, tmp_path: Path
) -> None:
    modes: dict[bool, set[int]] = {True: set(), False: set()}

    def look(event: Event) -> None:
        for home in memory_root().glob("braid-*"):
            name = home / "checkpoint"
            is_own = name.is_file() and home.owner() == tmp_path.owner()
            if is_own and str(tmp_path) in name.read_text(errors="replace"):
                for path in (home, *home.rglob("*")):
                    modes[path.is_dir()].add(stat.S_IMODE(path.stat().st_mode))

    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(FILES))
    with hostile_folders(tmp_path / "checkpoint") as folders:
        run = place.start(workers=2)
        run.listen(look)
        run.await_termination()
        assert all(os.path.lexists(folder) for folder in folders)
    place.check()
    assert modes == {True: {0o700}, False: {0o600}}
    identity = next((tmp_path / "checkpoint").glob("braid.json")).read_text()
    left = [home.name for home in memory_root().glob("braid-*")]
    assert not [name for name in left if name.split("-")[1] in identity]


def with_executors_elsewhere(root: Path, folder: Path) -> set[str]:
    """A run whose executors have another memory than its driver; the folders seen in it."""
    os.environ["BRAID_MEMORY_ROOT"] = str(root)
    spark = braid.session("local-cluster[2,1,1024]")
    del os.environ["BRAID_MEMORY_ROOT"]
    seen: set[str] = set()

    def look(event: Event) -> None:
        if event.name == "batch":
            seen.update(home.name for home in root.iterdir())

    try:
        place = Place(folder, ONE_KEY)
        place.arrive(range(FILES))
        run = place.start(workers=2)
        run.listen(look)
        run.await_termination()
        place.check()
    finally:
        spark.stop()
    return seen


def test_other_hosts_keep_nothing_of_a_run_nor_of_dead_ones(tmp_path: Path) -> None:
    root = tmp_path / "shm"
    dead = root / "braid-dead" / "executor"
    dead.mkdir(parents=True)
    (dead.parent / "checkpoint").write_text(str(tmp_path / "gone"))
    seen = in_own_process(with_executors_elsewhere, root, tmp_path / "place")
    assert len(seen) == 1
    assert "braid-dead" not in seen
    assert not list(root.iterdir())


def with_little_memory(root: Path, folder: Path) -> list[list[dict[str, Any]]]:
    """Runs with no room in memory at all, and with less than the state takes; their events."""
    os.environ["BRAID_MEMORY_ROOT"] = str(root)
    spark = braid.session("local[2]")
    events = []
    try:
        for name in ("none", "little"):
            place = Place(folder / name, ONE_KEY)
            place.arrive(range(FILES))
            filler = root / "filler"
            if name == "none":
                with pytest.raises(OSError, match="No space left"), filler.open("wb") as file:
                    file.write(bytes(1 << 20))
            events.append(place.run(workers=2))
            place.check()
            filler.unlink(missing_ok=True)
            assert not list(root.iterdir())
    finally:
        spark.stop()
    return events


def test_state_that_memory_has_no_room_for_goes_to_disk_which_is_told_once(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "shm", "64k") as root:
        none, little = in_own_process(with_little_memory, root, tmp_path)
    for events in (none, little):
        (told,) = (event for event in events if event["event"] == "displaced")
        assert "no space left" in told["reason"].lower()
        assert str(tmp_path / "shm") in told["reason"]
        shares = [w for e in events if e["event"] == "batch" for w in e["workers"]]
        assert sum(share["displaced_runs"] for share in shares) > 0
        assert max(share["disk_bytes"] for share in shares) > 0
    assert {w["memory_bytes"] for e in none if e["event"] == "batch" for w in e["workers"]} == {
        0
    }
    assert any(w["memory_bytes"] for e in little if e["event"] == "batch" for w in e["workers"])
