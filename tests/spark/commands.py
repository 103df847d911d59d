"""The real command, many times in one process, over three small streams of three formats.

Spark starts slowly, so commands run one after the other in a process that stays. What people do
wrong with them is in `test_bad_input` and `test_bad_queries`.
"""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MANY_COMMANDS = """
import contextlib, io, json, os, sys, tempfile, traceback
from braid.cli import main
answers = sys.stdout
for line in sys.stdin:
    sys.argv, code = ["braid", *json.loads(line)], 0
    with tempfile.TemporaryFile() as err, contextlib.redirect_stdout(io.StringIO()) as out:
        os.dup2(err.fileno(), 2)  # what a library logs is to be seen as well
        try:
            main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stderr.flush()
        err.seek(0)
        told = err.read().decode()
    print(json.dumps([code, out.getvalue(), told]), file=answers, flush=True)
"""
EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TIME = pa.timestamp("us", "UTC")
COLUMNS = pa.schema([("k", pa.int64()), ("ts", TIME), ("v", pa.int64()), ("name", pa.string())])
QUERY = (
    "SELECT a.k, a.v AS av, b.v AS bv, c.v AS cv FROM a [RANGE 3 SECONDS], "
    "b [RANGE 3 SECONDS], c [RANGE 3 SECONDS] WHERE a.k = b.k AND b.k = c.k"
)
FILE_MS = 10_000  # each file covers so much time
Row = dict[str, Any]


@dataclass(frozen=True)
class Told:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


@contextmanager
def many_commands() -> Iterator[Callable[..., Told]]:
    """A function that runs `braid` with the given words."""
    process = subprocess.Popen(
        [sys.executable, "-c", MANY_COMMANDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    given, answers = process.stdin, process.stdout

    def run(*words: str | Path) -> Told:
        given.write(json.dumps([*map(str, words)]) + "\n")
        given.flush()
        return Told(*json.loads(answers.readline()))

    with process:
        yield run
        given.close()


@dataclass(frozen=True)
class Place:
    """Three streams, one of each format, and the folders of a run over them."""

    folder: Path

    def fill(self, files: int, rows: int = 12) -> Place:
        for number in range(files):
            for stream in FORMATS:
                self.write(stream, number, self.rows(stream, number, rows))
        return self

    def rows(self, stream: str, number: int, count: int = 12) -> list[Row]:
        return [
            {
                "k": i % 4,
                "ts": EPOCH
                + dt.timedelta(milliseconds=number * FILE_MS + i * FILE_MS // count),
                "v": 1000 * number + i,
                "name": f"{stream}{i}",
            }
            for i in range(count)
        ]

    def write(self, stream: str, number: int, rows: list[Row]) -> None:
        path = self.file(stream, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        FORMATS[stream](path, rows)

    def file(self, stream: str, number: int) -> Path:
        ending = {"a": "parquet", "b": "csv", "c": "json"}[stream]
        return self.folder / "v1.0 of streams" / stream / f"{number}.{ending}"

    @property
    def streams(self) -> list[str]:
        folders = {stream: self.file(stream, 0).parent for stream in FORMATS}
        return [x for name, folder in folders.items() for x in ("--stream", f"{name}={folder}")]

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def command(self, query: str = QUERY, **other: Path) -> list[str | Path]:
        out, checkpoint = other.get("out", self.out), other.get("checkpoint", self.checkpoint)
        given = ["-q", query, *self.streams, "--workers", "2"]
        return ["run", *given, "--out", out, "--checkpoint", checkpoint]

    def batches(self) -> list[int]:
        return sorted(int(path.name.partition("=")[2]) for path in self.out.glob("__batch=*"))

    def results(self) -> Counter[tuple[Any, ...]]:
        parts = [pq.read_table(path) for path in self.out.glob("__batch=*/*.parquet")]
        rows = pa.concat_tables(parts).to_pylist()
        return Counter(tuple(row.values()) for row in rows)


def write_parquet(path: Path, rows: list[Row], columns: pa.Schema = COLUMNS) -> None:
    pq.write_table(pa.Table.from_pylist(rows, columns), path)


def write_csv(path: Path, rows: list[Row]) -> None:
    lines = [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
    path.write_text("\n".join([",".join(COLUMNS.names), *lines]) + "\n")


def write_json(path: Path, rows: list[Row]) -> None:
    lines = [json.dumps(row, default=str) for row in rows]
    path.write_text("\n".join(lines) + "\n")


FORMATS: dict[str, Callable[[Path, list[Row]], None]] = {
    "a": write_parquet,
    "b": write_csv,
    "c": write_json,
}


def assert_refused(told: Told, *words: str | Path) -> None:
    """One error that says these words, with a cure, and no stack trace."""
    assert told.code == 1, told
    assert "Traceback" not in told.err + told.out
    assert told.err.count("error: ") == 1, told.err
    error = told.err.partition("error: ")[2]
    for word in words:
        assert str(word) in error
    assert "hint: " in error, error
