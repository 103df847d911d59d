"""What README shows is run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.spark
def test_the_examples_of_the_readme_run_and_agree_with_duckdb(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    make_streams, run_pairs, explain = blocks("sh")
    (join_three,) = blocks("python")
    commands = [
        ["sh", "-c", make_streams],
        [sys.executable, "-c", join_three],
        ["sh", "-c", run_pairs],
        ["sh", "-c", run_pairs],  # finds nothing left to do
        ["sh", "-c", explain],
    ]
    said = [_run(command, tmp_path, environment) for command in commands]
    assert re.search(r"^\d+ rows gave [1-9]\d* results$", said[1], re.MULTILINE)
    assert said[3].startswith("0 rows in 0 batches")
    assert "plan ((a b) c)" in said[4]
    assert (tmp_path / "plan.svg").stat().st_size
    with duckdb.connect() as db:
        pairs = db.execute(f"SELECT count(*) FROM '{tmp_path}/pairs/__batch=*/*.parquet'")
        assert (
            pairs.fetchall()
            == db.execute(
                f"SELECT count(*) FROM '{tmp_path}/streams/a/*.parquet' a, "
                f"'{tmp_path}/streams/b/*.parquet' b "
                "WHERE a.k = b.k AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 2000000"
            ).fetchall()
        )


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
