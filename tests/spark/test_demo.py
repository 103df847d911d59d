"""The demo adapts on the screen in all three ways, and its results are exact."""

import json
import os
import pty
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BRAID = [sys.executable, "-c", "from braid.cli import main; main()"]


def test_the_demo_spills_moves_and_changes_its_plan_and_ends_exact(tmp_path):
    events = tmp_path / "events.jsonl"
    options = ["--batches", "24", "--rate", "300", "--events", str(events)]
    done = subprocess.run([*BRAID, "demo", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "equal to DuckDB's over the same offers: exact" in done.stdout
    seen = [json.loads(line) for line in events.read_text().splitlines()]
    assert any(e["event"] == "spill" and e["groups"] and e["reason"] for e in seen)
    assert any(e["event"] == "relocate" and e["step"] == "receive" for e in seen)
    assert any(e["event"] == "migrate" and e["step"] == "end" and e["reason"] for e in seen)
    assert "the plan changes" in done.stderr
    moved = "have come from worker 0 to worker 1: "
    for sentence in ("to disk: ", moved, "the plan has changed"):
        assert sentence in done.stderr, "while it runs"
        assert sentence in done.stdout, "and in the end"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_and_nothing_else_is_told_that_spark_starts(is_terminal):
    start = "from braid.cli.spark_start import start_spark as s; s('no such master')"
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", start],
        stderr=theirs if is_terminal else subprocess.PIPE,
        env=os.environ | {"TERM": "xterm"},
    )
    said = os.read(ours, 100_000) if is_terminal else done.stderr
    for each in (ours, theirs):
        os.close(each)
    assert (b"starting Spark" in said) is is_terminal
    assert b"Spark did not start" in said
