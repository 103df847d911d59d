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
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import braid

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

    @property
    def filling(self) -> int:
        """How many batches it takes to fill the window."""
        return self.window_s * RATE // ROWS_PER_FILE + 2

    @property
    def query(self) -> str:
        streams = ", ".join(f"{s} [RANGE {self.window_s} SECONDS]" for s in STREAMS)
        columns = "a.k, a.v AS va, b.v AS vb, c.v AS vc"
        last = "b.j = c.j" if self.is_tree else "b.k = c.k"
        return f"SELECT {columns} FROM {streams} WHERE a.k = b.k AND {last}"

    def write(self, folder: Path) -> Path:
        """The streams as folders of files; keys such that a row brings about one result."""
        random = np.random.default_rng(self.window_s)
        span_us = ROWS_PER_FILE * 1_000_000 // RATE
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True)
            for number in range(self.filling + self.settled):
                times = np.sort(random.integers(0, span_us, ROWS_PER_FILE)) + number * span_us
                most = RATE * self.window_s
                columns = {
                    "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                    "k": random.integers(0, most, ROWS_PER_FILE),
                    "j": random.integers(0, most, ROWS_PER_FILE),
                    "v": np.arange(ROWS_PER_FILE),
                }
                pq.write_table(pa.table(columns), folder / stream / f"{number:05d}.parquet")
        return folder


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
    last = [event for event in run.events() if event["event"] == "batch"][-SETTLED:]
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
    braid.session("local[2]")
    small, large = Load(50), Load(200)
    with tempfile.TemporaryDirectory(prefix="braid-growth-") as name:
        root = Path(name)
        for load in (small, large):
            load.write(root / f"window{load.window_s}")
        cases = {
            "base": (small, 256),
            "four times the state": (large, 256),
            "tree": (replace(small, is_tree=True), 256),
            "tree, four times the state": (replace(large, is_tree=True), 256),
            "8 groups": (small, 8),
            "512 groups": (small, 512),
        }
        best: dict[str, Measured] = {}
        for _ in range(ROUNDS):
            for case, (load, groups) in cases.items():
                seen = measure(
                    load, root / f"window{load.window_s}", root / "run", groups=groups
                )
                best[case] = min(seen, best.get(case, seen), key=lambda m: m.batch_ms)
    report(best)


def report(best: dict[str, Measured]) -> None:
    """Print the ratios beside what they should stay below."""
    live_rows = RATE * 50 * len(STREAMS)  # the watermark is at the end of the input
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
        "state bytes to Arrow bytes": (best["base"].state_bytes / (live_rows * ROW_BYTES), 1.6),
    }
    for case, seen in best.items():
        print(
            f"{case:>26}: {seen.batch_ms:5.0f} ms a batch, {seen.results:,.0f} results, "
            f"{seen.state_rows:,} rows of state in {seen.state_bytes / 1e6:.1f} MB"
        )
    for name, (ratio, mark) in ratios.items():
        print(f"{name:>28}: {ratio:.2f} (at most {mark}) {'ok' if ratio <= mark else 'MISSED'}")
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "bench-results/growth.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(
        json.dumps({name: {"ratio": r, "mark": m} for name, (r, m) in ratios.items()}, indent=2)
    )


if __name__ == "__main__":
    main()
