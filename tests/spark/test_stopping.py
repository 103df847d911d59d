"""Signals to the real command: the batch at hand is finished, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from braid.record.checkpoint import read_sealed
from braid.worker.memory_tier import memory_root
from tests.spark.commands import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

FILES, WINDOW_S = 10, 3
BRAID = Path(sys.executable).parent / "braid"


def expected(place: Place) -> Counter[tuple[Any, ...]]:
    """What the three streams' rows make, by plain loops."""
    a, b, c = ([row for n in range(FILES) for row in place.rows(s, n)] for s in "abc")
    results: Counter[tuple[Any, ...]] = Counter()
    for x in a:
        for y in (y for y in b if y["k"] == x["k"] and _near(x, y)):
            for z in (z for z in c if z["k"] == x["k"] and _near(x, z) and _near(y, z)):
                results[x["k"], x["v"], y["v"], z["v"]] += 1
    return results


def _near(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return abs((one["ts"] - other["ts"]).total_seconds()) <= WINDOW_S


@contextmanager
def command(place: Place, log: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a session of its own, as a shell would start it."""
    with (
        log.open("w") as file,
        subprocess.Popen(
            [BRAID, *map(str, place.command()), *options],
            stdout=file,
            stderr=file,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        yield process


def wait_for(log: Path, words: str) -> None:
    until = time.monotonic() + 120
    while words not in log.read_text():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.05)


def wait_for_orders(place: Place) -> None:
    until = time.monotonic() + 60
    while not list(place.checkpoint.glob("orders/*.json")):
        assert time.monotonic() < until, "there is no next batch"
        time.sleep(0.05)


def check_nothing_is_left(place: Place, session: int) -> None:
    until = time.monotonic() + 30
    while _processes_of(session):
        assert time.monotonic() < until, "processes stay behind"
        time.sleep(0.1)
    identity = read_sealed(place.checkpoint / "braid.json")["id"]
    assert not list(memory_root().glob(f"braid-{identity}-*"))
    assert not list(place.out.glob(".staging/*"))


def _processes_of(session: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def test_a_signal_ends_the_command_after_the_batch_at_hand(tmp_path: Path) -> None:
    place = Place(tmp_path).fill(FILES)

    log = tmp_path / "terminated.log"
    with command(place, log) as process:
        wait_for(log, "batch 1:")
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    told = log.read_text()
    last = place.batches()[-1]
    assert f"stopped after batch {last}; the same command goes on" in told
    assert "Traceback" not in told
    check_nothing_is_left(place, process.pid)

    # As a terminal does it: all processes get the signal.
    log = tmp_path / "interrupted.log"
    with command(place, log) as process:
        wait_for(log, f"batch {last + 2}:")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
    told = log.read_text()
    assert f"stopped after batch {place.batches()[-1]}; the same command goes on" in told
    assert "Traceback" not in told
    assert "tried again" not in told
    check_nothing_is_left(place, process.pid)

    done = subprocess.run([BRAID, *map(str, place.command())], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert place.results() == expected(place)


@pytest.mark.parametrize("interval", ["0 seconds", "8 seconds"], ids=["at work", "idle"])
def test_a_second_signal_ends_the_command_at_once(tmp_path: Path, interval: str) -> None:
    place = Place(tmp_path).fill(FILES)
    log = tmp_path / "log"
    with command(place, log, "--interval", interval) as process:
        wait_for(log, "batch 1:")
        # A batch that cannot go on: its workers are held, before it begins or at work.
        for pid in _processes_of(process.pid):
            if pid != process.pid and "pyspark.daemon" in _command_of(pid):
                os.kill(pid, signal.SIGSTOP)
        wait_for_orders(place)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        wait_for(log, "a second signal ends at once")
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 128 + signal.SIGINT
        assert time.monotonic() - began < 15
    assert "Traceback" not in log.read_text()
    for pid in _processes_of(process.pid):
        os.kill(pid, signal.SIGCONT)
    check_nothing_is_left(place, process.pid)


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_a_signal_while_spark_starts_leaves_no_java_behind(tmp_path: Path) -> None:
    place, log = Place(tmp_path).fill(1), tmp_path / "log"
    with command(place, log) as process:
        until = time.monotonic() + 60
        while not any("SparkSubmit" in _command_of(p) for p in _processes_of(process.pid)):
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.01)
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    told = log.read_text()
    assert "stopping once Spark has started; a second signal ends at once" in told
    assert told.splitlines()[-1] == "stopped"
    assert "Traceback" not in told
    until = time.monotonic() + 30
    while _processes_of(process.pid):
        assert time.monotonic() < until, "processes stay behind"
        time.sleep(0.1)


def test_a_signal_to_all_processes_is_told_without_stack_traces(tmp_path: Path) -> None:
    place, log = Place(tmp_path).fill(FILES), tmp_path / "log"
    with command(place, log) as process:
        wait_for(log, "batch 1:")
        os.killpg(process.pid, signal.SIGTERM)  # as service managers do it
        assert process.wait(60) == 128 + signal.SIGTERM
    told = log.read_text()
    assert f"stopped after batch {place.batches()[-1]}; the same command goes on" in told
    assert "Traceback" not in told
    assert "ERROR" not in told
    check_nothing_is_left(place, process.pid)


RESET = """
import signal, threading
from braid.cli.spark_start import start_spark
spark = start_spark("local[1]")
java = spark.sparkContext._gateway.proc
java.send_signal(signal.SIGSTOP)  # so that it dies with a question unread
threading.Timer(1, java.kill).start()
try:
    spark.sparkContext._jsc.sc().isStopped()
except Exception:
    print("no answer")
"""


def test_a_connection_that_spark_breaks_off_is_not_logged() -> None:
    done = subprocess.run([sys.executable, "-c", RESET], capture_output=True, text=True)
    assert done.stdout == "no answer\n", done
    assert done.stderr == ""
