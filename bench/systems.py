"""Which systems there are, how much of the input each one sees, and how one is run.

Slow systems see a prefix of the input. It always covers the warm-up (compilation, and a window
that is full on every side, which for Spark's second join takes 25 s of event time) and
leaves enough for a steady rate, within about a minute and a half at the speeds known so far.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY = Path(__file__).resolve().parent.parent
PEERS_STAMP = ".venv-peers/setup.stamp"  # what make calls their environment once it is whole
LIMIT_SECONDS = 900
GRACE_SECONDS = 15  # to end after the report; Spark has been seen to hang in shutdown


@dataclass(frozen=True, slots=True)
class Prefix:
    """How many batches a system reads, and how many of them are warm-up."""

    batches: int
    warm_up: int


@dataclass(frozen=True, slots=True)
class System:
    """One system under test: a script that prints a `Measurement`."""

    name: str
    script: str
    prefixes: Mapping[str, Prefix]  # by setting
    options: tuple[str, ...] = ()
    in_peers_venv: bool = False
    sees_files: bool = True  # False: batches mean nothing to it, so one run serves all settings
    joins: bool = True  # False: its output is not the result, so there is nothing to check


SMALL = {"small": Prefix(4, 0)}
WHOLE = SMALL | {"150k": Prefix(120, 60), "1500k": Prefix(12, 4), "1500k-dense": Prefix(8, 4)}
HALF = SMALL | {"150k": Prefix(40, 16), "1500k": Prefix(4, 2), "1500k-dense": Prefix(8, 4)}
SHORT = SMALL | {"150k": Prefix(12, 6), "1500k": Prefix(3, 1), "1500k-dense": Prefix(8, 5)}
# Pathway keeps all that it has seen, more than a gigabyte per million rows.
BRIEF = SMALL | {"150k": Prefix(20, 8), "1500k": Prefix(2, 1), "1500k-dense": Prefix(3, 2)}
AT_ONCE = {name: Prefix(prefix.batches, 0) for name, prefix in WHOLE.items()}

SYSTEMS = {
    system.name: system
    for system in (
        System("braid", "bench.braid_join", WHOLE),
        System(
            "braid-pass-through",
            "bench.braid_join",
            WHOLE,
            options=("--pass-through",),
            joins=False,
        ),
        System(
            "spark-default", "bench.peers.spark_native", SHORT, options=("--store", "default")
        ),
        System(
            "spark-rocksdb", "bench.peers.spark_native", SHORT, options=("--store", "rocksdb")
        ),
        System("flink", "bench.peers.flink", HALF, in_peers_venv=True, sees_files=False),
        System(
            "pathway", "bench.peers.pathway_join", BRIEF, in_peers_venv=True, sees_files=False
        ),
        System("duckdb", "bench.peers.duckdb_join", AT_ONCE, sees_files=False),
    )
}


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs systems one at a time, each in a process and a process group of its own."""

    work_dir: Path
    peers_python: Path | None = None

    def run(self, system: System, input_dir: Path, prefix: Prefix) -> Measurement:
        """Start the system, wait for its report, and see that nothing of it stays behind."""
        scratch = self.work_dir / "scratch" / system.name
        shutil.rmtree(scratch, ignore_errors=True)
        log = self.work_dir / f"{system.name}.log"
        python = self.peers_python if system.in_peers_venv else sys.executable
        assert python is not None, "systems that are not installed are left out before"
        command = [str(python), "-m", system.script, str(input_dir), str(scratch)]
        command += ["--batches", str(prefix.batches), "--warm-up", str(prefix.warm_up)]
        try:
            report = self._report([*command, *system.options], log)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if report is None:
            raise RuntimeError(f"{system.name} ended without a report: see {log}")
        return report

    def _report(self, command: list[str], log: Path) -> Measurement | None:
        with log.open("w") as errors:
            process = subprocess.Popen(
                command,
                cwd=REPOSITORY,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # so that its JVMs can be ended with it
            )
            limit = threading.Timer(LIMIT_SECONDS, end_group, [process])
            limit.start()
            try:
                return read_report(process)
            finally:
                limit.cancel()
                end_group(process)


def read_report(process: subprocess.Popen[str]) -> Measurement | None:
    """The first line that is a measurement, and a moment for the process to end by itself."""
    for line in process.stdout:
        if line.startswith('{"system"'):
            with suppress(subprocess.TimeoutExpired):  # then the caller ends it
                process.wait(GRACE_SECONDS)
            return Measurement(**json.loads(line))
    return None


def end_group(process: subprocess.Popen[str]) -> None:
    """End the process and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def peers_interpreter(*, install: bool) -> Path | None:
    """The interpreter of Flink and Pathway, or None if they are not installed.

    To install them takes a few minutes.
    """
    if install:
        command = ["make", "--silent", PEERS_STAMP]
        if subprocess.run(command, cwd=REPOSITORY, check=False).returncode:
            return None
    is_whole = (REPOSITORY / PEERS_STAMP).exists()
    return REPOSITORY / ".venv-peers" / "bin" / "python" if is_whole else None
