"""NEXMark with Braid, each answer compared with DuckDB's: `python -m examples.nexmark.run`.

Makes some tens of thousands of events, runs the queries of this folder on them one by one, and
prints what they took. The exit code is 0 if all answers are exact.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from braid.workload import nexmark, write_slices
from examples.against_duckdb import Verdict, require, run_and_compare

QUERIES = {
    "q3": ("auction", "person"),
    "q4": ("auction", "bid"),
    "q7": ("bid",),
    "q8": ("person", "auction"),
    "q9": ("auction", "bid"),
    "q20": ("bid", "auction"),
}
"""The queries, and the streams that each reads."""


def main() -> None:
    options = _options()
    require("duckdb")
    console = Console()
    with tempfile.TemporaryDirectory(prefix="braid-nexmark-") as name:
        folder = Path(name)
        streams = make_streams(folder, options.rate, options.seconds, options.seed)
        verdicts = {}
        for query in options.query or QUERIES:
            with console.status(f"{query} ..."):
                verdicts[query] = answer(query, streams, folder / query)
    console.print(picture(verdicts))
    sys.exit(any(verdict.differences for verdict in verdicts.values()))


def make_streams(folder: Path, rate: int, seconds: float, seed: int) -> dict[str, Path]:
    """Write the three streams; five seconds of each are a file, and a batch."""
    spec = nexmark.NexmarkSpec(rate=rate, seed=seed)
    for stream in nexmark.STREAMS:
        write_slices(
            partial(nexmark.rows, spec, stream), stream, folder / stream, seconds=seconds
        )
    return {stream: folder / stream for stream in nexmark.STREAMS}


def answer(query: str, streams: dict[str, Path], work: Path) -> Verdict:
    work.mkdir()
    needed = {stream: streams[stream] for stream in QUERIES[query]}
    return run_and_compare(Path(__file__).with_name(f"{query}.sql"), needed, work)


def picture(verdicts: dict[str, Verdict]) -> Table:
    table = Table("query", title="NEXMark, compared with DuckDB")
    for heading in ("rows in", "results", "seconds", "rows/s"):
        table.add_column(heading, justify="right")
    table.add_column("exact")
    for query, verdict in verdicts.items():
        table.add_row(
            query,
            f"{verdict.rows_in:,}",
            f"{verdict.results:,}",
            f"{verdict.seconds:,.1f}",
            f"{verdict.rows_in / verdict.seconds:,.0f}",
            "yes" if not verdict.differences else f"no: {', '.join(verdict.differences)}",
        )
    return table


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=2000, help="events per second")
    # A little over a minute: at its end all streams have passed the last window's boundary.
    parser.add_argument("--seconds", type=float, default=62.0, help="length of the streams")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("query", nargs="*", help=f"of {', '.join(QUERIES)}; left out, all")
    options = parser.parse_args()
    for query in options.query:
        if query not in QUERIES:
            parser.error(f"unknown query {query!r}")
    return options


if __name__ == "__main__":
    main()
