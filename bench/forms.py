"""What other forms of a query cost, over the rows of `bench.workload`, in one run.

* a chain on two keys, beside Spark's own joins (with the store that is faster there);
* a filter that keeps one row in a hundred of each stream, beside the join without it;
* an aggregate on top of the join, beside the join alone.

Rates count the rows that were read, whatever a filter let through.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from bench.options import benchmark_parser, out_folder
from bench.peers.duckdb_join import open_input
from bench.systems import SHORT, WHOLE, Prefix, Runner, System
from bench.workload import SETTINGS, WINDOW_MS, make_input

if TYPE_CHECKING:
    from bench.measurement import Measurement

SYSTEMS = [
    *(
        System(f"braid-{form}", "bench.braid_join", WHOLE, ("--form", form, "--passes", "3"))
        for form in ("join", "chain", "filtered", "grouped")
    ),
    System("spark-chain", "bench.peers.spark_native", SHORT, ("--form", "chain")),
]

_WINDOWS = " AND ".join(
    f"abs(epoch_ms({x}.ts) - epoch_ms({y}.ts)) <= {WINDOW_MS}"
    for x, y in (("a", "b"), ("b", "c"), ("a", "c"))
)
COUNTS = {
    "chain": f"a.k = b.k AND b.j = c.j AND {_WINDOWS}",
    "filtered": f"a.k = b.k AND b.k = c.k AND {_WINDOWS} "
    "AND a.v % 100 = 0 AND b.v % 100 = 0 AND c.v % 100 = 0",
}
"""What the results of some forms must satisfy, for DuckDB to count them."""

TARGETS = {
    "chain on two keys to Spark's own": ("braid-chain", "spark-chain", 10.0, True),
    "filter of 1 % to no filter": ("braid-filtered", "braid-join", 3.0, True),
    "join alone to aggregated": ("braid-join", "braid-grouped", 1.3, False),
}
"""A name, two systems, and what the ratio of their rates should be at least, or at most."""


def expected(form: str, input_dir: Path, prefix: Prefix) -> int | None:
    """The true number of results, where they can be counted in a simple way."""
    if form not in COUNTS:
        return None
    with open_input(input_dir, prefix.batches) as connection:
        query = f"SELECT count(*) FROM a, b, c WHERE {COUNTS[form]}"
        (count,) = connection.execute(query).fetchone()
    return count


def main() -> None:
    """Measure all forms, and print and write the ratios."""
    parser = benchmark_parser("bench.forms", __doc__)
    work = Path(tempfile.gettempdir(), "braid-bench")
    parser.add_argument("--work", type=Path, default=work)
    arguments = parser.parse_args()
    out, setting = out_folder(arguments), SETTINGS["small" if arguments.small else "1500k"]
    input_dir = make_input(setting, arguments.work / "input")
    runner = Runner(arguments.work)
    seen: dict[str, Measurement] = {}
    for system in SYSTEMS:
        prefix = system.prefixes[setting.name]
        seen[system.name] = runner.run(system, input_dir, prefix)
        rate, found = seen[system.name].steady_rows_per_second, seen[system.name].output_rows
        sys.stderr.write(f"{system.name:>16}: {rate:,.0f} rows/s, {found:,} results\n")
        true = expected(system.name.partition("-")[2], input_dir, prefix)
        if true is not None and found != true:
            sys.exit(f"{system.name} found {found:,} results, and there are {true:,}")
    table = Table("ratio of rates", "measured", "target", title="Forms of a query")
    ratios = {}
    for name, (left, right, target, at_least) in TARGETS.items():
        ratio = seen[left].steady_rows_per_second / seen[right].steady_rows_per_second
        met = ratio >= target if at_least else ratio <= target
        sign = "at least" if at_least else "at most"
        table.add_row(name, f"{ratio:.2f}", f"{sign} {target} {'met' if met else 'missed'}")
        ratios[name] = {"ratio": ratio, "target": target, "met": met}
    Console().print(table)
    record = {"ratios": ratios, "systems": {n: asdict(m) for n, m in seen.items()}}
    (out / "forms.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
