"""How a batch's time grows with the state and with the number of groups, and what state weighs.

Four questions, each answered by steady-state batches of the same 150 k rows:

* four times the state (window and keys four times as large, so results per row stay the same);
* the same for a tree: a chain on two keys, which keeps intermediate results;
* 512 groups in place of 8;
* bytes of state per live row, over the bytes that those rows take as plain Arrow columns.

The runs that are compared take turns, batch time is the median over a run's last batches, and
the better of two rounds counts on each side: the machines are noisy.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import braid
from bench.options import benchmark_parser, out_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.events import Event

    Listener = Callable[[Event], None]

STREAMS = ("a", "b", "c")
ROWS_PER_FILE = 50_000
RATE = 10_000  # rows per second of event time and stream
SETTLED = 20  # last batches that are measured
ROUNDS = 2
ROW_BYTES = 3 * 8  # ts, k, v as plain Arrow columns


@dataclass(frozen=True)
class Load:
    """A window, in seconds, and streams long enough to fill it; a tree joins on two keys."""

    window_s: int
    is_tree: bool = False
    settled: int = SETTLED  # batches with a full window
    rows_per_file: int = ROWS_PER_FILE
    rate: int = RATE

    @property
    def filling(self) -> int:
        """How many batches it takes to fill the window."""
        return self.window_s * self.rate // self.rows_per_file + 2

    @property
    def live_bytes(self) -> int:
        """What the rows of full windows take as plain Arrow columns."""
        return self.rate * self.window_s * len(STREAMS) * ROW_BYTES

    @property
    def query(self) -> str:
        streams = ", ".join(f"{s} [RANGE {self.window_s} SECONDS]" for s in STREAMS)
        columns = "a.k, a.v AS va, b.v AS vb, c.v AS vc"
        last = "b.j = c.j" if self.is_tree else "b.k = c.k"
        return f"SELECT {columns} FROM {streams} WHERE a.k = b.k AND {last}"

    def write(self, folder: Path) -> Path:
        """The streams as folders of files; keys such that a row brings about one result."""
        random = np.random.default_rng(self.window_s)
        span_us = self.rows_per_file * 1_000_000 // self.rate
        rows = self.rows_per_file
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True)
            for number in range(self.filling + self.settled):
                times = np.sort(random.integers(0, span_us, rows)) + number * span_us
                most = self.rate * self.window_s
                columns = {
                    "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                    "k": random.integers(0, most, rows),
                    "j": random.integers(0, most, rows),
                    "v": np.arange(rows),
                }
                pq.write_table(pa.table(columns), folder / stream / f"{number:05d}.parquet")
        return folder


SMALL = Load(1, settled=2, rows_per_file=1_000, rate=1_000)


@dataclass(frozen=True)
class Measured:
    """A run's last batches: their median time, their results, and the state at the end."""

    batch_ms: float
    results: float
    state_rows: int
    state_bytes: int


def measure(load: Load, streams: Path, scratch: Path, **options: Any) -> Measured:
    """Join all files, and look at the last batches."""
    run = join_all(load.query, streams, scratch, **options)
    last = [event for event in run.events() if event["event"] == "batch"][-load.settled :]
    return Measured(
        batch_ms=median(event["elapsed_ms"] for event in last),
        results=median(event["output_rows"] for event in last),
        state_rows=run.progress.state_rows,
        state_bytes=max(
            sum(w["memory_bytes"] + w["disk_bytes"] for w in event["workers"]) for event in last
        ),
    )


def join_all(
    query: str, streams: Path, scratch: Path, listener: Listener | None = None, **options: Any
) -> braid.Run:
    """A run over all files, that has ended."""
    shutil.rmtree(scratch, ignore_errors=True)
    named = {path.name: braid.files(path) for path in streams.iterdir()}
    run = braid.query(query, event_time="ts", **named).start(
        checkpoint=scratch / "checkpoint", sink=braid.sinks.parquet(scratch / "out"), **options
    )
    if listener is not None:
        run.listen(listener)
    run.await_termination()
    return run


def main() -> None:
    """Answer the four questions, as a table and as JSON."""
    arguments = benchmark_parser("bench.growth", __doc__).parse_args()
    braid.session("local[2]")
    few = SMALL if arguments.small else Load(50)
    many = replace(few, window_s=4 * few.window_s)
    with tempfile.TemporaryDirectory(prefix="braid-growth-") as name:
        root = Path(name)
        for load in (few, many):
            load.write(root / f"window{load.window_s}")
        cases = {
            "base": (few, 256),
            "four times the state": (many, 256),
            "tree": (replace(few, is_tree=True), 256),
            "tree, four times the state": (replace(many, is_tree=True), 256),
            "8 groups": (few, 8),
            "512 groups": (few, 512),
        }
        best: dict[str, Measured] = {}
        for _ in range(1 if arguments.small else ROUNDS):
            for case, (load, groups) in cases.items():
                seen = measure(
                    load, root / f"window{load.window_s}", root / "run", groups=groups
                )
                best[case] = min(seen, best.get(case, seen), key=lambda m: m.batch_ms)
    report(best, few.live_bytes, out_folder(arguments))


def report(best: dict[str, Measured], live_bytes: int, out: Path) -> None:
    """Print the ratios beside what they should stay below.

    The watermark is at the end of the input: what is live are the rows of full windows.
    """
    ratios = {
        "four times the state": (
            best["four times the state"].batch_ms / best["base"].batch_ms,
            1.25,
        ),
        "tree, four times the state": (
            best["tree, four times the state"].batch_ms / best["tree"].batch_ms,
            1.25,
        ),
        "512 groups to 8": (best["512 groups"].batch_ms / best["8 groups"].batch_ms, 1.15),
        "state bytes to Arrow bytes": (best["base"].state_bytes / live_bytes, 1.6),
    }
    for case, seen in best.items():
        print(
            f"{case:>26}: {seen.batch_ms:5.0f} ms a batch, {seen.results:,.0f} results, "
            f"{seen.state_rows:,} rows of state in {seen.state_bytes / 1e6:.1f} MB"
        )
    for name, (ratio, mark) in ratios.items():
        print(f"{name:>28}: {ratio:.2f} (at most {mark}) {'ok' if ratio <= mark else 'MISSED'}")
    record = {name: {"ratio": ratio, "mark": mark} for name, (ratio, mark) in ratios.items()}
    (out / "growth.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
