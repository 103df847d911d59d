"""The memory tier of real runs: private, and not stopped by what others leave beside it."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from braid.runtime.memory_tier import memory_root
from tests.spark.kill_workloads import ONE_KEY
from tests.spark.test_overflow import FILES, Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from braid.events import Event

pytestmark = pytest.mark.spark


@contextmanager
def hostile_folders() -> Iterator[list[Path]]:
    """What other users and accidents may leave in the real memory of this machine."""
    names = ("fifo", "nul", "other", "link")
    folders = [memory_root() / f"braid-test-{name}-{os.getpid()}" for name in names]
    fifo, nul, other, link = folders
    try:
        for folder in (fifo, nul, other):
            folder.mkdir()
        os.mkfifo(fifo / "checkpoint")
        (nul / "checkpoint").write_bytes(b"/\0\xff")
        (other / "checkpoint").write_text("/gone")
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
            if (home / "checkpoint").is_file() and str(tmp_path) in (
                home / "checkpoint"
            ).read_text(errors="replace"):
                for path in (home, *home.rglob("*")):
                    modes[path.is_dir()].add(stat.S_IMODE(path.stat().st_mode))

    place = Place(tmp_path, ONE_KEY)
    place.arrive(range(FILES))
    with hostile_folders() as folders:
        run = place.start(workers=2)
        run.listen(look)
        run.await_termination()
        assert all(os.path.lexists(folder) for folder in folders)
    place.check()
    assert modes == {True: {0o700}, False: {0o600}}
    identity = next((tmp_path / "checkpoint").glob("braid.json")).read_text()
    left = [home.name for home in memory_root().glob("braid-*")]
    assert not [name for name in left if name.split("-")[1] in identity]
