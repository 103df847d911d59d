"""Writes checkpoints of runs that were killed in the middle of something.

    python -m tests.spark.old_checkpoints FOLDER

makes `FOLDER/streams`, the input, and for each case its checkpoint, output and late rows, as
the code at hand writes them. Each format that there has been has such a folder in
`tests/data/checkpoints`, made once; later versions continue from them.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tests.oracle.answers import counted
from tests.spark.kill_harness import Job
from tests.spark.kill_workloads import GROUPS, STREAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SEED, BATCHES, ROWS = 15, 12, 120
WORKLOAD = GROUPS  # grouped, over two keys
KEPT = ("checkpoint", "out", "late")


def record_in(checkpoint: Path) -> dict[str, Any]:
    """The newest commit record, read without any code of ours."""
    newest = max((checkpoint / "commits").glob("*.json"), key=lambda path: int(path.stem))
    body: dict[str, Any] = json.loads(newest.read_bytes())["body"]
    return body


def published(out: Path) -> Counter[tuple[Any, ...]]:
    """All results in an output, whatever its folders are called."""
    return _rows_of(out.glob("*batch=*/*.parquet"))


def published_late(late: Path) -> Counter[tuple[Any, ...]]:
    """All late rows in their folder, as (stream, v)."""
    shown: Counter[tuple[Any, ...]] = Counter()
    for stream in STREAMS:
        rows = _rows_of(late.glob(f"*batch=*/stream={stream}/*.parquet"), ["v"])
        shown += Counter({(stream, v): count for (v,), count in rows.items()})
    return shown


def _rows_of(
    files: Iterable[Path], columns: list[str] | None = None
) -> Counter[tuple[Any, ...]]:
    tables = (pq.ParquetFile(path).read(columns) for path in files)
    return sum(map(counted, tables), Counter())


def is_spilled(record: dict[str, Any]) -> bool:
    return '"disk"' in json.dumps(record)


def is_owing(record: dict[str, Any]) -> bool:
    return any(record["generations"])


def is_moving(record: dict[str, Any]) -> bool:
    """Whether groups are on their way, and rows wait for them."""
    return bool(record["moves"]) and any(record["waiting"])


@dataclass(frozen=True)
class Case:
    """How to run, and what the record must have when the run is killed."""

    options: tuple[str, ...]
    is_reached: Callable[[dict[str, Any]], bool]
    first_death: int = (
        2  # the batch; a change of plan begins only if two batches are of one run
    )


_TIGHT = ("--memory", "8KB", "--groups", "16")
CASES = {
    "moving": Case(
        (
            *_TIGHT,
            *("--overflow", "defer", "--assign", "0.9,0.1"),
            *("--strategy", "lazy-disk theta_r=0.99 tau_ms=0"),
        ),
        lambda record: is_moving(record) and is_spilled(record),
    ),
    "owing": Case(
        (*_TIGHT, "--overflow", "defer", "--strategy", "spill-only"),
        lambda record: is_owing(record) and is_spilled(record),
    ),
    "changing": Case(
        (
            *_TIGHT,
            *("--strategy", "spill-only", "--migration", "moving-state"),
            *("--migrate-at", "3:(a (b c))", "--migration-pause", "1 millisecond"),
        ),
        lambda record: record["change"] is not None and is_spilled(record),
        first_death=5,
    ),
    "track": Case(
        (
            *_TIGHT,
            *("--strategy", "spill-only", "--migration", "parallel-track"),
            *("--migrate-at", "3:(a (b c))"),
        ),
        lambda record: record["change"] is not None and is_spilled(record),
        first_death=5,
    ),
}


def _write(case: Case, place: Path, temporary: Path) -> bool:
    """Kill a run behind each of its batches until its record has what the case wants."""
    with Job(temporary, SEED, WORKLOAD, BATCHES, ROWS, options=case.options) as job:
        for batch in range(case.first_death, BATCHES - 3):
            job.start(failpoint=f"log swept@{batch}").die()
            if case.is_reached(record_in(job.checkpoint)):
                for name in KEPT:
                    shutil.copytree(job.folder / name, place / name)
                for name in STREAMS:
                    streams = place.parent / "streams" / name
                    shutil.copytree(job.folder / name, streams, dirs_exist_ok=True)
                return True
    return False


def main(folder: Path) -> None:
    """Write all cases."""
    for name, case in CASES.items():
        if (folder / name).exists():
            continue
        with tempfile.TemporaryDirectory() as temporary:
            if not _write(case, folder / name, Path(temporary) / "job"):
                sys.exit(f"no run was cut off as {name!r} wants it")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
