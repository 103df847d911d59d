"""Every benchmark runs in small, and leaves the figures that it is for.

Those that start Spark several times do so with `make cases` only; `tests/docs/test_commands.py`
sees that all begin.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONG = pytest.mark.skipif("BRAID_CASES" not in os.environ, reason="long: see `make cases`")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def run(folder, module, *arguments):
    command = [sys.executable, "-m", module, "--small", *arguments, "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_braid_its_ceiling_and_duckdb_are_measured_and_exact(tmp_path):
    systems = ["braid", "braid-pass-through", "duckdb"]
    run(tmp_path, "bench", "--work", str(tmp_path / "work"), "--systems", *systems)
    record = json.loads((tmp_path / "results.json").read_text())
    exact = {each["measurement"]["system"]: each["exact"] for each in record["runs"]}
    assert exact == {"braid": True, "braid-pass-through": None, "duckdb": True}
    rows = {each["measurement"]["input_rows"] for each in record["runs"]}
    assert rows == {12_000}
    drawn = tmp_path / "results.png"
    drawn.unlink()
    command = [sys.executable, "-m", "bench.report", str(tmp_path / "results.json")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert drawn.stat().st_size


def test_peers_that_are_not_installed_are_left_out_and_named(tmp_path):
    said = run(tmp_path, "bench", "--work", str(tmp_path), "--systems", "duckdb", "flink")
    is_installed = (ROOT / ".venv-peers" / "setup.stamp").exists()
    assert ("left out: flink (not installed: make .venv-peers/setup.stamp)" in said) is not (
        is_installed
    )


@pytest.mark.parametrize(
    ("module", "arguments", "figures"),
    [
        pytest.param("bench.growth", (), "growth.json", marks=LONG),
        pytest.param("bench.forms", (), "forms.json", marks=LONG),
        pytest.param(
            "bench.adapting", ("ample", "advised", "moving"), "adapting.json", marks=LONG
        ),
        pytest.param("bench.adapting", ("burst", "slowed"), "adapting.json", marks=LONG),
        pytest.param("bench.costs", ("chain",), "costs.json", marks=LONG),
        ("bench.decisions", (), None),
        ("bench.optimizers", (), None),
    ],
)
def test_a_benchmark_runs(tmp_path, module, arguments, figures):
    if module == "bench.forms":
        arguments = ("--work", str(tmp_path / "work"))
    run(tmp_path, module, *arguments)
    if figures is not None:
        assert json.loads((tmp_path / figures).read_text())
