from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import braid
from tests.unit.state.making import small_disk

USE = (
    "import numpy as np, braid.worker.kernel, braid.plan.keys, braid.worker.gather;"
    "from braid.state.bloom import filter_of;"
    "print(len(filter_of(np.array([1, 2], np.uint64))) > 0)"
)


def test_without_a_folder_for_compiled_code_all_is_compiled_anew_which_is_told_once(
    tmp_path: Path,
) -> None:
    shutil.copytree(
        Path(braid.__file__).parent,
        tmp_path / "braid",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for folder in (tmp_path / "braid").rglob("*/"):
        (folder / "__pycache__").touch()  # a file, so that nobody can write into it
    nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}
    given = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", USE],
        env=given | nowhere | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
    assert done.stderr.count("no folder to keep compiled code in") == 1
    assert "Traceback" not in done.stderr


def test_without_room_for_compiled_code_all_is_compiled_anew_which_is_told_once(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", "8k") as disk:
        done = subprocess.run(
            [sys.executable, "-c", USE],
            env=os.environ | {"NUMBA_CACHE_DIR": str(disk)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert any(disk.iterdir()), "it was meant to be used"
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
    assert done.stderr.count("cannot keep compiled code: No space left on device") == 1
    assert "Traceback" not in done.stderr
