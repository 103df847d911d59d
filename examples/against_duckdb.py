"""Runs a query over folders of files with `braid run`, and compares its results with DuckDB's.

An example is a folder with queries `NAME.sql` in Braid's language and, beside each, the same
question for DuckDB in `NAME.duckdb.sql`, written by hand. DuckDB sees all rows at once, each
stream as a view of its name, and the moment up to which Braid can answer as the variable
`watermark`.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run brought, and in what it differs from DuckDB: nothing, if it is exact."""

    rows_in: int
    results: int
    seconds: float
    differences: tuple[str, ...]


def require(*packages: str) -> None:
    """End with a word on what to install if a package that an example needs is not here."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    if absent:
        sys.exit(f"not installed: {', '.join(absent)}\n  hint: pip install -e '.[examples]'")


def run_and_compare(query: Path, streams: Mapping[str, Path], work: Path) -> Verdict:
    """Answer a query twice; `work` is a folder for results, checkpoint and events."""
    done = run_query(query, streams, work)
    with connect(streams) as db:
        differences = compare(db, query.with_suffix(".duckdb.sql").read_text(), work / "out")
    return Verdict(
        done["input_rows"], done["output_rows"], done["elapsed_ms"] / 1000, differences
    )


def run_query(query: Path, streams: Mapping[str, Path], work: Path) -> dict[str, int]:
    """Run a query until its files are used up; the last event says what it did."""
    events = work / "events.jsonl"
    done = subprocess.run(
        [
            Path(sys.executable).with_name("braid"),
            "run",
            query,
            *(
                word
                for name, folder in streams.items()
                for word in ("--stream", f"{name}={folder}")
            ),
            *("--out", work / "out", "--checkpoint", work / "checkpoint", "--events", events),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(f"braid run {query} failed:\n{done.stderr}")
    finished: dict[str, int] = json.loads(events.read_text().splitlines()[-1])
    return finished


def connect(streams: Mapping[str, Path]) -> duckdb.DuckDBPyConnection:
    """A database with the streams as views, and the watermark that they reach together."""
    import duckdb

    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    for name, folder in streams.items():
        db.execute(f"CREATE VIEW {name} AS FROM '{folder}/*.parquet'")
    newest = " UNION ALL ".join(f"SELECT max(ts) AS ts FROM {name}" for name in streams)
    db.execute(f"SET VARIABLE watermark = (SELECT min(ts) FROM ({newest}))")
    return db


def compare(db: duckdb.DuckDBPyConnection, question: str, out: Path) -> tuple[str, ...]:
    """In what the results in a folder differ from DuckDB's answer, as sets with repetition."""
    db.execute(f"CREATE TEMP TABLE expected AS {question}")
    db.execute(
        "CREATE TEMP TABLE found AS "
        f"FROM read_parquet('{out}/__batch=*/*.parquet', hive_partitioning = false)"
    )
    expected, found = (_columns(db, table) for table in ("expected", "found"))
    if sorted(expected) != sorted(found):
        return (f"columns {', '.join(found)} in place of {', '.join(expected)}",)
    missing, surplus = (
        db.execute(f"SELECT count(*) FROM ({ours} EXCEPT ALL {theirs})").fetchall()[0][0]
        for ours, theirs in (
            (_rows("expected", expected), _rows("found", expected)),
            (_rows("found", expected), _rows("expected", expected)),
        )
    )
    return tuple(
        f"{n:,} rows {what}" for n, what in ((missing, "missing"), (surplus, "too many")) if n
    )


def _columns(db: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    return dict(
        db.execute(f"SELECT column_name, column_type FROM (DESCRIBE {table})").fetchall()
    )


def _rows(table: str, columns: Mapping[str, str]) -> str:
    """All rows, with fractions rounded: the order of a sum shows in their last digits."""
    chosen = (
        f"round({name}, 6) AS {name}" if kind == "DOUBLE" else name
        for name, kind in columns.items()
    )
    return f"SELECT {', '.join(chosen)} FROM {table}"
