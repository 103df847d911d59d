"""Runs, stores and joins to try things on; without Spark, and in memory where there is room."""

from __future__ import annotations

import datetime as dt
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from braid.model.expression import Column
from braid.model.query import Key, Output, Query, StreamRef
from braid.plan.join_plan import JoinPlan, make_plan
from braid.state.order import sort_rows
from braid.state.runs import DEADLINE
from braid.state.store import DISK, MEMORY, Ownership, RunStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TIME = pa.timestamp("us", "UTC")
STREAM = pa.schema([("k", pa.int64()), ("ts", TIME), ("v", pa.int64())])
RUN = pa.schema(
    [
        pa.field("hash", pa.uint64(), False),
        pa.field("time", pa.int64(), False),
        pa.field("column v", pa.int64()),
    ]
)


def generator(*seeds: int) -> np.random.Generator:
    """Randomness from a seed and the shape of a case: Hypothesis likes to repeat mere seeds."""
    return np.random.default_rng(seeds)


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder where making files durable costs nothing, for laws that make thousands."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="tests-of-state-", dir=shared if shared.is_dir() else None
    ) as folder:
        yield Path(folder)


def run_rows(
    hashes: Sequence[int], times: Sequence[int], deadlines: Sequence[int] | None = None
) -> pa.RecordBatch:
    """Rows in the form and the order of a run; `v` numbers them as they were given.

    Joined rows have deadlines.
    """
    arrays = [
        pa.array(np.array(hashes, np.uint64)),
        pa.array(np.array(times, np.int64)),
        pa.array(np.arange(len(hashes))),
    ]
    schema = RUN
    if deadlines is not None:
        arrays.append(pa.array(np.array(deadlines, np.int64)))
        schema = RUN.append(pa.field(DEADLINE, pa.int64()))
    return sort_rows(pa.RecordBatch.from_arrays(arrays, schema=schema))


def random_rows(
    random: np.random.Generator, count: int, oldest_us: int, newest_us: int
) -> pa.RecordBatch:
    """Rows with random hashes; the times cover the bounds, and both of those."""
    times = random.integers(oldest_us, newest_us, count, endpoint=True)
    times[:2] = [oldest_us, newest_us][:count]
    return run_rows(random.integers(0, 2**64, count, np.uint64), times)


def all_groups(groups: int = 16) -> Ownership:
    return Ownership(groups, np.ones(groups, np.bool_))


def store_in(folder: Path, ownership: Ownership | None = None) -> RunStore:
    """The store of one worker below `folder`, with its log."""
    tiers = {MEMORY: folder / MEMORY, DISK: folder / DISK}
    for place in (*tiers.values(), folder / "log"):
        place.mkdir(exist_ok=True)
    return RunStore(tiers, folder / "log", ownership or all_groups())


def equal_join(
    streams: int, window_us: int, *, groups: int = 16, lateness_us: int = 0
) -> JoinPlan:
    """A join of like streams s0, s1, … on `k`, with every member's `v` and `ts` in a result."""
    refs = tuple(StreamRef(f"s{n}", f"s{n}", window_us) for n in range(streams))
    output = [Output(f"v{n}", Column(n, "v")) for n in range(streams)]
    output += [Output(f"t{n}", Column(n, "ts")) for n in range(streams)]
    key = Key(tuple(Column(n, "k") for n in range(streams)))
    query = Query("equal join", refs, (key,), tuple(output))
    types = {Column(n, field.name): field.type for n in range(streams) for field in STREAM}
    return make_plan(query, types, "ts", groups=groups, lateness_us=lateness_us)


def stream_rows(
    random: np.random.Generator, count: int, oldest_ms: int, newest_ms: int, keys: int
) -> pa.Table:
    """Rows of one stream with event times in `oldest_ms ... newest_ms` after `EPOCH`.

    They lie on a grid of 10 ms, so that with windows that do so too many fall on a bound.
    """
    times = (10 * random.integers(oldest_ms // 10, newest_ms // 10 + 1, count)).tolist()
    return pa.table(
        {
            "k": random.integers(0, keys, count),
            "ts": pa.array([EPOCH + dt.timedelta(milliseconds=ms) for ms in times], TIME),
            "v": random.integers(0, 1 << 40, count),
        },
        schema=STREAM,
    )


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A real file system of a given size; the test is skipped if we may not mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "braid-tests", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cannot mount a small disk: {error}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


def flip_bit(path: Path, at: int) -> None:
    """Change one bit of a file, under a new inode as a copy would; `at` may be negative."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    rewrite(path, bytes(data))


def rewrite(path: Path, data: bytes) -> None:
    """Other bytes under the same name, without touching those that someone may have mapped."""
    path.unlink()
    path.write_bytes(data)
