"""The one input that every system joins, and the files that hold it.

Three streams `a`, `b`, `c` of `(ts, k, j, v)`, sorted by time, as directories of Parquet files
whose name order is the arrival order: file *n* of each stream together are batch *n*. The
query is `a ⋈ b ⋈ c` on `k`, with all timestamps within ten seconds of one another (both ends
count). `bench.forms` has other queries over the same rows, which join on `j` as well.

**Rows.** Arrivals are uniform over event time, keys are uniform over `rate x window` values.
A triple then has `3 window²` of room, so `rate³ x 3 window² / keys²` results come per second
from `3 x rate` rows: one result per input row. Timestamps are whole milliseconds although
they are stored as microseconds, because Flink's event time knows no finer unit.

**Settings.** `150k` and `1500k` cut *the same rows* into files of other sizes, so that
results and density agree, only the batch differs, and systems that ignore file boundaries
need one run for both. At 10,000 rows per second of event time the window spans two batches of
the first setting: most partners come from state. A batch of the second spans five windows:
most partners come along in the same batch, and little is kept between batches. That is what a
large batch is at a given rate (a long trigger, or a backlog), but it is also the kinder case
for an engine that joins whole batches. `1500k-dense` is the check on it: ten times the rate,
so that the window spans two batches again, with 3 M rows in the window. It is not in the
default run, since native Spark needs many minutes to fill such a window. `small` measures
nothing: it shows that all systems run and are exact.

How the systems read these files is not told here but in `bench/peers/`.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

STREAMS = ("a", "b", "c")
WINDOW_MS = 10_000
EPOCH_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("j", pa.int64()),
        ("v", pa.int64()),
    ]
)
MERGED_COLUMNS = ("tag", "ts_ms", "k", "v")


@dataclass(frozen=True, slots=True)
class Setting:
    """How many rows there are, how dense in event time, and how they are cut into files."""

    name: str
    rows_per_file: int
    files: int  # per stream
    rows_per_second: int  # of event time, per stream
    seed: int = 7

    @property
    def rows_per_stream(self) -> int:
        """Rows of one stream over all files."""
        return self.rows_per_file * self.files

    @property
    def rows_per_batch(self) -> int:
        """Rows of one batch over all streams."""
        return self.rows_per_file * len(STREAMS)

    @property
    def keys(self) -> int:
        """Distinct keys, such that an input row brings one result on average."""
        return self.rows_per_second * WINDOW_MS // 1000

    def scaled(self, factor: float) -> Setting:
        """Thin the streams out: fewer rows per file and second, same batches and event time."""
        return replace(
            self,
            rows_per_file=round(self.rows_per_file * factor),
            rows_per_second=round(self.rows_per_second * factor),
        )


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("150k", rows_per_file=50_000, files=120, rows_per_second=10_000),
        Setting("1500k", rows_per_file=500_000, files=12, rows_per_second=10_000),
        Setting("1500k-dense", rows_per_file=500_000, files=8, rows_per_second=100_000),
        Setting("small", rows_per_file=1_000, files=4, rows_per_second=200),
    )
}


def stream_rows(setting: Setting, position: int) -> pa.Table:
    """All rows of the stream at `position`; the same for every way to cut them into files."""
    random = np.random.default_rng([setting.seed, position])
    count = setting.rows_per_stream
    span_ms = count * 1000 // setting.rows_per_second
    ts_ms = EPOCH_MS + np.sort(random.integers(0, span_ms, count))
    keys = random.integers(0, setting.keys, count)
    others = random.integers(0, setting.keys, count)
    columns = [ts_ms * 1000, keys, others, np.arange(count)]
    columns = [pa.array(column) for column in columns]
    return pa.table([columns[0].cast(SCHEMA.field("ts").type), *columns[1:]], schema=SCHEMA)


def make_input(setting: Setting, root: Path) -> Path:
    """Write the input below `root` unless it is there already; return its directory."""
    target = root / f"{setting.name}-{setting.rows_per_file}"
    manifest = target / "manifest.json"
    wanted = asdict(setting) | {"columns": SCHEMA.names}
    if manifest.exists() and json.loads(manifest.read_text()) == wanted:
        return target
    shutil.rmtree(target, ignore_errors=True)
    for position, stream in enumerate(STREAMS):
        (target / stream).mkdir(parents=True)
        rows = stream_rows(setting, position)
        for number in range(setting.files):
            path = target / stream / f"{number:05d}.parquet"
            part = rows.slice(number * setting.rows_per_file, setting.rows_per_file)
            # Four row groups, so that one file can feed several tasks.
            pq.write_table(part, path, row_group_size=max(1, setting.rows_per_file // 4))
            # Spark takes files in order of modification time, to the millisecond.
            os.utime(path, (EPOCH_MS // 1000 + number,) * 2)
    manifest.write_text(json.dumps(wanted))  # last: its presence says that the rest is whole
    return target


def batch_files(input_dir: Path, stream: str, batches: int | None = None) -> list[Path]:
    """The files of one stream in arrival order, or the first `batches` of them."""
    return sorted((input_dir / stream).glob("*.parquet"))[:batches]


def link_prefix(input_dir: Path, target: Path, batches: int | None = None) -> Path:
    """Give a system that reads whole directories only the first batches, without a copy."""
    for stream in STREAMS:
        (target / stream).mkdir(parents=True)
        for path in batch_files(input_dir, stream, batches):
            os.link(path, target / stream / path.name)
    return target


def ts_ms(rows: pa.Table) -> pa.ChunkedArray:
    """The timestamps as milliseconds, for formats that have none of their own."""
    return rows["ts"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())


def merged_rows(input_dir: Path, batches: int | None = None) -> pa.Table:
    """The first batches as one table in time order, for systems that want a single source.

    Columns: `tag` (the position in `STREAMS`), `ts_ms`, `k`, `v`.
    """
    parts = []
    for position, stream in enumerate(STREAMS):
        for path in batch_files(input_dir, stream, batches):
            rows = pq.read_table(path)
            columns = [
                pa.array(np.full(len(rows), position)),
                ts_ms(rows),
                rows["k"],
                rows["v"],
            ]
            parts.append(pa.table(columns, names=MERGED_COLUMNS))
    return pa.concat_tables(parts).sort_by("ts_ms")


def count_input_rows(input_dir: Path, batches: int | None = None) -> int:
    """Rows of all streams in the first batches, from the files' footers."""
    return sum(
        pq.read_metadata(path).num_rows
        for stream in STREAMS
        for path in batch_files(input_dir, stream, batches)
    )
