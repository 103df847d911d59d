"""What adapting costs, and what it saves: ratios of batch times, each within one run or two.

    python -m bench.adapting [QUESTION …]

* `ample`: everything switched on, with more memory than is needed, beside everything off;
* `advised`: what an optimizer takes of the time of batches where there is nothing to find: by
  default, and if it looks for a plan after every batch. Runs differ by far more than that, so
  its own time is taken, within one run;
* `moving`: the other groups' throughput while a fifth of the state moves;
* `burst`: batches while a key bursts, beside the calm ones before, with the buffer and without;
* `slowed`: the same while the processes of one executor get a fraction of their time.

Batch times are medians. `ample` takes turns and counts the better of two rounds on each side,
as the machines are noisy.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import braid
from bench import growth
from bench.growth import Load, join_all, measure
from bench.options import benchmark_parser, out_folder
from braid.record.move import Move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from braid.control.statistics import Snapshot
    from braid.events import Event

ALL_ON: dict[str, Any] = {"memory": "4GB", "strategy": "auto", "skew_buffer": 10_000_000}
MOVED = 0.2  # of the state
QUIET_BATCHES = 8  # between two moves
WARM_BATCHES = 6  # that are measured by nobody
HOT_KEY = 0


@dataclass(frozen=True)
class Size:
    """How much there is to join."""

    calm: Load
    moving: tuple[Load, ...]
    skew_rows: int  # of each stream in a batch
    burst_rows: int
    files: int
    trouble: range  # the batches that burst, or are slowed


REAL = Size(
    calm=Load(50),
    moving=(
        Load(200, settled=68, rows_per_file=50_000),
        Load(200, settled=48, rows_per_file=500_000),
    ),
    skew_rows=400_000,
    burst_rows=15_000,
    files=48,
    trouble=range(16, 23),
)
SMALL = Size(
    calm=growth.SMALL,
    moving=(replace(growth.SMALL, settled=24),),
    skew_rows=2_000,
    burst_rows=500,
    files=12,
    trouble=range(8, 10),
)


@dataclass(frozen=True)
class Mark:
    """A ratio, and what it should be."""

    name: str
    ratio: float
    mark: float
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        return self.ratio >= self.mark if self.at_least else self.ratio <= self.mark

    def __str__(self) -> str:
        should = f"{'at least' if self.at_least else 'at most'} {self.mark}"
        return (
            f"{self.name:>44}: {self.ratio:.2f} ({should}) {'ok' if self.is_met else 'MISSED'}"
        )


def ample(root: Path, size: Size) -> Iterator[Mark]:
    """The same join with nothing to adapt to, and ready for everything."""
    load = size.calm
    streams = load.write(root / "calm")
    best = {}
    for _ in range(2):
        for name, options in {"off": {}, "on": ALL_ON}.items():
            seen = measure(load, streams, root / "run", **options).batch_ms
            best[name] = min(seen, best.get(name, seen))
    yield Mark("ready for everything, to nothing", best["on"] / best["off"], 1.05)


def advised(root: Path, size: Size) -> Iterator[Mark]:
    """Streams that stay as they are, on one key and on two."""
    for is_tree in (False, True):
        load = replace(size.calm, is_tree=is_tree)
        streams = load.write(root / f"advised{is_tree}")
        for name, trigger in {
            "as it is": "data",
            "always": "data interval_ms=0 threshold=0",
        }.items():
            options = {"optimizer": "exhaustive", "replan_when": trigger}
            run = join_all(load.query, streams, root / "run", **options)
            batches = [event for event in run.events() if event["event"] == "batch"]
            looks = sum(event["event"] == "plan" for event in run.events())
            keys = "two keys" if is_tree else "one key"
            decided_ms = sum(event["decided_ms"] for event in batches)
            print(f"{keys}, {name}: {looks} looks for a plan, {decided_ms} ms to decide")
            without = sum(event["elapsed_ms"] for event in batches)
            yield Mark(
                f"with an optimizer, to without: {keys}, {name}",
                (without + decided_ms) / without,
                1.02,
            )


@dataclass(frozen=True)
class Shuttle:
    """Moves a part of all state from one worker to the other, and next time back."""

    first_batch: int
    next_batch: int = 0
    moves: int = 0

    def decide(self, snapshot: Snapshot, /) -> tuple[Shuttle, tuple[Move, ...]]:
        """Something every so many batches, once the window is full."""
        if snapshot.batch < max(self.first_batch, self.next_batch):
            return self, ()
        sender, receiver = self.moves % 2, 1 - self.moves % 2
        table = snapshot.workers[sender].tables[0]
        wanted = MOVED * sum(load.memory_bytes for load in snapshot.workers)
        count = int(np.searchsorted(np.cumsum(table.memory_bytes), wanted)) + 1
        later = replace(self, next_batch=snapshot.batch + QUIET_BATCHES, moves=self.moves + 1)
        groups = tuple(table.group[:count].tolist())
        return later, (Move(sender, receiver, 0, groups, int(wanted), "the benchmark"),)


def moving(root: Path, size: Size) -> Iterator[Mark]:
    """The same rows come in every batch: so the others' throughput goes by its time alone.

    A move makes the one worker as full as the other was, so that batches stay comparable. The
    first move warms up what carries it, as the batches before have warmed up theirs.
    """
    for load in size.moving:
        streams = load.write(root / f"moving{load.rows_per_file}")
        shuttle = Shuttle(first_batch=load.filling + WARM_BATCHES)
        run = join_all(
            load.query,
            streams,
            root / "run",
            memory="4GB",
            strategy=shuttle,
            assign="0.6,0.4",
        )
        calm, during, moved = parted(run.events(), shuttle.first_batch + QUIET_BATCHES)
        rows = f"{3 * load.rows_per_file:,} rows a batch"
        print(
            f"{rows}: {len(moved)} moves of {np.mean(moved):.0%} of the state over "
            f"{len(during)} batches: {np.mean(during):.0f} ms, else {np.mean(calm):.0f} ms"
        )
        name = f"others' rate in a move, {rows}"
        yield Mark(name, float(np.mean(calm) / np.mean(during)), 0.8, at_least=True)


def parted(
    events: list[dict[str, Any]], first_batch: int
) -> tuple[list[int], list[int], list[float]]:
    """Times of batches without a move and with one, and the parts of the state that moved.

    The batch that takes groups out is with a move, and so is that which joins what waited.
    """
    times, moved, begun = {}, [], {}
    busy: set[int] = set()
    for event in events:
        match event:
            case {"event": "batch", "batch": batch}:
                times[batch] = event["elapsed_ms"]
                state_rows = sum(worker["state_rows"] for worker in event["workers"])
            case {"event": "relocate", "step": "deactivate", "batch": batch}:
                begun[event["sender"]] = batch
            case {"event": "relocate", "step": "receive", "batch": batch}:
                if batch >= first_batch:
                    moved.append(event["rows"] / state_rows)
            case {"event": "relocate", "step": "reactivate", "batch": batch}:
                busy.update(range(begun[event["sender"]], batch + 1))
    late = {batch: ms for batch, ms in times.items() if batch >= first_batch}
    calm = [ms for batch, ms in late.items() if batch not in busy]
    return calm, [ms for batch, ms in late.items() if batch in busy], moved


SKEW_QUERY = (
    "SELECT a.k, a.v AS va, b.v AS vb FROM a [RANGE 30 SECONDS], b [RANGE 30 SECONDS] "
    "WHERE a.k = b.k"
)
SKEW_SPAN_S = 5  # of event time


def write_skew(folder: Path, size: Size, burst_rows: int) -> Path:
    """Two streams; some rows of `a` in the batches of trouble are of one key, common in `b`."""
    random = np.random.default_rng(1)
    span_us = SKEW_SPAN_S * 1_000_000
    for stream in "ab":
        (folder / stream).mkdir(parents=True)
        for number in range(size.files):
            times = np.sort(random.integers(0, span_us, size.skew_rows)) + number * span_us
            keys = random.integers(1, size.skew_rows * 6, size.skew_rows)
            hot = 50 if stream == "b" else burst_rows * (number in size.trouble)
            keys[random.choice(size.skew_rows, hot, replace=False)] = HOT_KEY
            columns = {
                "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                "k": keys,
                "v": np.arange(size.skew_rows),
            }
            pq.write_table(pa.table(columns), folder / stream / f"{number:05d}.parquet")
    return folder


def skewed(
    name: str, streams: Path, root: Path, when: range, trouble: Trouble | None
) -> Iterator[Mark]:
    """Batches in trouble beside the calm ones before, with the buffer and without."""
    join_all(SKEW_QUERY, streams, root / "run", workers=2)  # only to be warm
    for buffer_rows, at_least in ((50_000_000, False), (None, True)):
        run = join_all(
            SKEW_QUERY,
            streams,
            root / "run",
            workers=2,
            skew_buffer=buffer_rows,
            listener=trouble,
        )
        times = {e["batch"]: e["elapsed_ms"] for e in run.events() if e["event"] == "batch"}
        calm = median(ms for batch, ms in times.items() if 6 < batch < when.start)
        during = median(ms for batch, ms in times.items() if batch in when)
        after = median(ms for batch, ms in times.items() if batch >= when.stop)
        held = [e for e in run.events() if e["event"] == "hold"]
        most = max((event["waiting_rows"] for event in held), default=0)
        print(
            f"{name}, {'no' if buffer_rows is None else 'with a'} buffer: calm {calm:.0f} ms, "
            f"in trouble {during:.0f}, after {after:.0f}; at most {most:,} rows waited"
        )
        with_it = "without the buffer" if buffer_rows is None else "with the buffer"
        yield Mark(f"{name}, to calm, {with_it}", during / calm, 1.3, at_least)


def burst(root: Path, size: Size) -> Iterator[Mark]:
    """A key that is common in one stream bursts in the other."""
    streams = write_skew(root / "burst", size, size.burst_rows)
    yield from skewed("a key that bursts", streams, root, size.trouble, None)


class Trouble:
    """Lets the Python processes of one executor run for a fraction of the time, for a while."""

    RUN_S, REST_S = 0.01, 0.03

    def __init__(self, when: range) -> None:
        self._when = when
        self._is_on = threading.Event()
        threading.Thread(target=self._hinder, daemon=True).start()

    def __call__(self, event: Event) -> None:
        """Begin and end with the batches of trouble."""
        if event.name == "batch":
            batch = event.batch
            (self._is_on.set if batch + 1 in self._when else self._is_on.clear)()

    def _hinder(self) -> None:
        while True:
            self._is_on.wait()
            processes = python_workers()
            try:
                signal_all(processes, signal.SIGSTOP)
                time.sleep(self.REST_S)
            finally:
                signal_all(processes, signal.SIGCONT)
            time.sleep(self.RUN_S)


def signal_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Some may have ended."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)


def python_workers() -> list[psutil.Process]:
    """Those of the first executor: children of its daemon, which bears the same name."""
    of_executor: dict[int, list[psutil.Process]] = {}
    for process in psutil.Process(os.getpid()).children(recursive=True):
        with suppress(psutil.Error):
            parent = process.parent()
            if parent is not None and all(
                "pyspark.daemon" in p.cmdline() for p in (process, parent)
            ):
                of_executor.setdefault(parent.pid, []).append(process)
    return of_executor[min(of_executor)] if len(of_executor) > 1 else []


def slowed(root: Path, size: Size) -> Iterator[Mark]:
    """One of two executors gets a quarter of its time."""
    braid.session("local[2]").stop()
    session = braid.session("local-cluster[2,1,2048]")
    streams = write_skew(root / "slowed", size, burst_rows=0)
    yield from skewed("a worker slowed", streams, root, size.trouble, Trouble(size.trouble))
    session.stop()


QUESTIONS: dict[str, Callable[[Path, Size], Iterator[Mark]]] = {
    "ample": ample,
    "advised": advised,
    "moving": moving,
    "burst": burst,
    "slowed": slowed,
}


def main() -> None:
    """Answer the questions, on the screen and as JSON."""
    parser = benchmark_parser("bench.adapting", __doc__)
    parser.add_argument("questions", nargs="*", choices=[*QUESTIONS, "all"], default="all")
    arguments = parser.parse_args()
    size = SMALL if arguments.small else REAL
    marks = []
    for name in QUESTIONS if "all" in arguments.questions else arguments.questions:
        if name != "slowed":
            braid.session("local[2]")
        with tempfile.TemporaryDirectory(prefix="braid-adapting-") as folder:
            for mark in QUESTIONS[name](Path(folder), size):
                marks.append(mark)
                print(mark)
    record = {mark.name: {"ratio": mark.ratio, "mark": mark.mark} for mark in marks}
    (out_folder(arguments) / "adapting.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
