"""A job to be killed again and again: `braid run` in processes of its own, and what must hold.

A `Job` is three folders of files, a checkpoint and an output folder; what each batch of it
must publish is said in `kill_workloads`. A `Driver` is one process on that job, from its start
to its death. Whom to kill, and when, is said in `test_kills`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow.parquet as pq

from braid.record.checkpoint import read_sealed
from braid.record.commit import Commit
from braid.spark.bad_rows import FOLDER as BAD_ROWS
from braid.worker.memory_tier import memory_root
from tests.oracle.answers import counted
from tests.spark.kill_workloads import LATENESS_S, ONE_KEY, STREAMS, Input, Published, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE_S = 240  # for one step of a driver, on a machine that has other things to do
_PAUSE_S = 0.01
_BRIEF_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # no JVM here lives to earn more


@dataclass
class Job:
    """Folders of input, made from a seed, and all that a run on them leaves behind."""

    folder: Path
    seed: int
    workload: Workload = ONE_KEY
    batches: int = 9
    rows: int = 2000  # of each stream in each batch
    master: str = "local[2]"
    workers: int = 2
    options: tuple[str, ...] = ()
    environ: dict[str, str] = field(default_factory=dict)
    drivers: list[Driver] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        for stream in STREAMS:
            (self.folder / stream).mkdir(parents=True)
            for number in range(self.batches):
                path = self.folder / stream / f"{number:04}.parquet"
                pq.write_table(self.input.table(stream, number), path)
        self.temporary.mkdir()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        for driver in self.drivers:
            driver.clear_away()

    @property
    def input(self) -> Input:
        return Input(self.seed, self.batches, self.rows, odd_rows=self.workload.odd_rows)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def late(self) -> Path:
        return self.folder / "late"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def events(self) -> Path:
        return self.folder / "events.jsonl"

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    def command(self) -> list[str]:
        """The one command that a person would give, and give again after a crash."""
        options = {
            "-q": self.workload.query,
            "--out": self.out,
            "--late": self.late,
            "--checkpoint": self.checkpoint,
            "--events": self.events,
            "--lateness": f"{LATENESS_S} seconds",
            "--master": self.master,
            "--workers": self.workers,
        }
        if self.workload.plan is not None:
            options["--plan"] = self.workload.plan
        words = [str(word) for option in options.items() for word in option]
        folders = [f"--stream={stream}={self.folder / stream}" for stream in STREAMS]
        words += [*folders, *self.workload.options, *self.options]
        return [os.path.join(os.path.dirname(sys.executable), "braid"), "run", *words]

    def start(
        self, failpoint: str = "", *, with_driver: bool = True, with_executor: bool = False
    ) -> Driver:
        """Run the command; with a failpoint, it dies at that step, whoever reaches it.

        Without the driver, it is only the worker that reaches the step first, alone or with its
        executor.
        """
        environ = os.environ | {
            "TMPDIR": str(self.temporary),
            "SPARK_LOCAL_DIRS": str(self.temporary),
            "BRAID_FAILPOINT": failpoint,
            "JAVA_TOOL_OPTIONS": _BRIEF_LIFE,
            **self.environ,
        }
        command = self.command()
        if with_driver:
            # `exec` keeps the pid: it is the driver that a worker is to take with it.
            command = ["sh", "-c", 'BRAID_FAILPOINT_PID=$$ exec "$@"', "sh", *command]
        else:
            environ["BRAID_FAILPOINT_ONCE"] = str(self.folder / "died")
        if with_executor:
            environ["BRAID_FAILPOINT_PID"] = "executor"
        past = len(list(self._events()))
        log = self.folder / f"driver-{len(self.drivers)}.log"
        with open(log, "wb") as file:
            process = subprocess.Popen(
                command,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that its descendants are known by their session
            )
        self.drivers.append(Driver(self, process, log, past))
        return self.drivers[-1]

    def finish(self) -> None:
        """Run to the end of the input: it must get there, exactly, and leave no litter."""
        self.start().end()
        self.check_result()

    def check_result(self) -> None:
        """What holds after the end, whatever came before it."""
        self.check_published_is_whole()
        assert list(self.published()) == list(self.expected), f"batches lack: {self}"
        for kind, found, expected in self._kinds():
            counts = [sum(map(len, each.values())) for each in (found, expected)]
            assert counts[0] == counts[1], f"{kind} lack: {self}"
        self._check_nothing_is_left()

    def check_all_results(self) -> None:
        """What holds after the end, if results may come later than their rows."""
        for kind, found, expected in self._kinds():
            all_found, all_expected = (sum(x.values(), Counter()) for x in (found, expected))
            missing, extra = all_expected - all_found, all_found - all_expected
            assert not missing, f"{len(missing)} {kind} lack: {self}"
            assert not extra, f"{len(extra)} {kind} too many: {self}"
        self._check_nothing_is_left()

    def check_published_is_whole(self) -> None:
        """What holds at any moment: of each batch all results are to be seen, or none."""
        published = self.published()
        assert list(published) == list(range(len(published))), f"a gap: {list(published)}"
        for kind, found, expected in (
            ("results", published, self.expected),
            ("late rows", self.published_late(), self.expected_late),
        ):
            for batch, rows in found.items():
                missing, extra = expected[batch] - rows, rows - expected[batch]
                assert not missing, f"batch {batch} lacks {len(missing)} {kind}: {self}"
                assert not extra, f"batch {batch} has {len(extra)} {kind} too many: {self}"

    def _kinds(self) -> Iterator[tuple[str, Published, Published]]:
        """By name, the results and the rows that are kept: those to be seen, and all due."""
        yield "results", self.published(), self.expected
        yield "late rows", self.published_late(), self.expected_late
        if self.workload.odd_rows:
            yield "bad rows", self.published_bad(), self.input.expected_bad()

    def published(self) -> Published:
        """The results that a reader sees now."""
        return {number: _rows_in(folder) for number, folder in _batches(self.out)}

    def published_late(self) -> Published:
        """The late rows that a reader sees now, as (stream, v)."""
        return {
            number: Counter(
                {
                    (stream, v): count
                    for stream in STREAMS
                    for (v,), count in _rows_in(folder / f"stream={stream}", ["v"]).items()
                }
            )
            for number, folder in _batches(self.late)
        }

    def published_bad(self) -> Published:
        """The bad rows that a reader sees now, as (stream, v)."""
        return {
            number: Counter(
                {
                    (stream, json.loads(row)["v"]): count
                    for (stream, row), count in _rows_in(folder, ["stream", "row"]).items()
                }
            )
            for number, folder in _batches(self.checkpoint / BAD_ROWS)
        }

    @cached_property
    def expected(self) -> Published:
        """The results that each batch must show."""
        return self.input.expected(self.workload)

    @cached_property
    def expected_late(self) -> Published:
        """The late rows that each batch must show."""
        return self.input.expected_late(self.workload)

    def last_commit(self) -> Commit:
        """The newest commit record."""
        records = (self.checkpoint / "commits").glob("*.json")
        return Commit.from_json(read_sealed(max(records, key=lambda path: int(path.stem))))

    def _check_nothing_is_left(self) -> None:
        """Of all the deaths, no file and no process stays behind."""
        commit = self.last_commit()
        logged = {path.name for path in (self.checkpoint / "log").iterdir()}
        assert logged == {section.file for section in commit.sections()}
        records = [path.name for path in (self.checkpoint / "commits").iterdir()]
        assert records == [f"{commit.batch}.json"]
        for folder in (self.checkpoint, self.checkpoint / BAD_ROWS, self.out, self.late):
            assert not list(folder.rglob("*.pending"))
            assert not list(folder.glob(".staging/*"))
        identity = read_sealed(self.checkpoint / "braid.json")["id"]
        assert not list(memory_root().glob(f"braid-{identity}-*")), "state is left in memory"
        for driver in self.drivers:
            wait_until(lambda driver=driver: not driver.processes(), "its processes are gone")

    def _events(self) -> Iterator[dict[str, Any]]:
        text = self.events.read_text() if self.events.exists() else ""
        return (json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n")


@dataclass
class Driver:
    """One process that runs a job, with the JVM and the workers that it has started."""

    job: Job
    process: subprocess.Popen[bytes]
    log: Path
    past: int  # events of the drivers before it

    def events(self, name: str) -> list[dict[str, Any]]:
        """What this run has reported so far under this name."""
        return [e for e in list(self.job._events())[self.past :] if e["event"] == name]

    def wait_for(self, name: str, count: int = 1) -> None:
        """Wait for so many events of a name, or for the driver's own end."""
        self.wait_until(lambda: len(self.events(name)) >= count, f"{count} events {name!r}")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something to become true, or for the driver's own end."""
        wait_until(lambda: holds() or self.process.poll() is not None, what)

    def kill(self) -> bool:
        """SIGKILL, to the driver alone; says whether it was still at work."""
        self.process.kill()
        code = self.process.wait()
        assert code in (0, -signal.SIGKILL), f"ended with {code}: {self.output()}"
        return code != 0

    def die(self) -> None:
        """Wait for a death that a failpoint brings."""
        code = self.process.wait(PATIENCE_S)
        assert code == -signal.SIGKILL, f"not killed, but ended with {code}: {self.output()}"

    def end(self) -> None:
        """Wait for the end of the input."""
        code = self.process.wait(PATIENCE_S)
        assert code == 0, f"ended with {code}: {self.output()}"

    def output(self) -> str:
        """What it wrote."""
        return self.log.read_text()

    def processes(self) -> list[psutil.Process]:
        """Those of its session that live, be the driver itself dead or not."""
        return [p for p in psutil.process_iter() if _session(p) == self.process.pid]

    def python_workers(self) -> list[psutil.Process]:
        """The processes that PySpark's daemon has forked."""
        return [p for p in self._running("pyspark.daemon") if _runs(p.parent(), "daemon")]

    def executors(self) -> list[psutil.Process]:
        """The JVMs that run tasks, on a cluster."""
        return self._running("CoarseGrainedExecutorBackend")

    def _running(self, word: str) -> list[psutil.Process]:
        return [process for process in self.processes() if _runs(process, word)]

    def clear_away(self) -> None:
        """End whatever a failed test has left running."""
        for process in self.processes():
            process.kill()
        self.process.wait()


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s in vain: {what}"
        time.sleep(_PAUSE_S)


def _batches(folder: Path) -> list[tuple[int, Path]]:
    return sorted((int(path.name.partition("=")[2]), path) for path in folder.glob("__batch=*"))


def _rows_in(folder: Path, columns: list[str] | None = None) -> Counter[tuple[Any, ...]]:
    tables = [pq.ParquetFile(path).read(columns) for path in folder.glob("*.parquet")]
    return sum((counted(table) for table in tables), Counter())


def _session(process: psutil.Process) -> int:
    try:
        alive = process.status() != psutil.STATUS_ZOMBIE
        return os.getsid(process.pid) if alive else -1
    except (psutil.Error, OSError):
        return -1


def _runs(process: psutil.Process | None, word: str) -> bool:
    try:
        return process is not None and any(word in part for part in process.cmdline())
    except psutil.Error:
        return False
