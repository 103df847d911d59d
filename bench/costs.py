"""Whether the plans that cost less by the cost model are those that keep workers less busy.

    python -m bench.costs [--plans 12] [--scale 600] [--seed 1]

Random plans join random streams in a chain; their costs differ by ten times or so. Each runs
through Spark on one worker. The model's constants are measured before, as a run with an
optimizer does, and it is told the true rates and selectivities. Of a second of input, foreseen
is what the operations take, and seen is how long the worker was busy, in the median of some
batches with full windows. That includes what no plan can save and no constant knows: receiving
rows, writing results, and the log. So ranks are compared, by Spearman's correlation.

How many operations there are, and how much memory, is tested in `tests/oracle`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import braid
from bench.adapting import Mark
from bench.growth import join_all
from braid.runtime.calibrate import measure_costs
from tests.oracle.chain_plans import LONGEST_S, random_plans, rank_correlation

if TYPE_CHECKING:
    from tests.oracle.chain_plans import Planned

WARM_UP = LONGEST_S + 3  # batches, of a second each
SETTLED = 7
TARGET = 0.9


def seen_ms(plan: Planned, root: Path) -> float:
    """How long the worker was busy with a second of input."""
    for second, rows in enumerate(plan.streams.rows(WARM_UP + SETTLED)):
        for name, table in rows.items():
            (root / "streams" / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(table, root / "streams" / name / f"{second:05d}.parquet")
    query = plan.streams.query(plan.windows)
    run = join_all(query, root / "streams", root / "run", workers=1, plan=plan.text)
    batches = [event for event in run.events() if event["event"] == "batch"][WARM_UP:]
    return median(sum(w["busy_ms"] for w in batch["workers"]) for batch in batches)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--plans", type=int, default=12)
    parser.add_argument("--scale", type=int, default=600, help="times 180 rows a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    options = parser.parse_args()
    braid.session("local[2]")
    model = measure_costs()
    table = Table(title=f"{180 * options.scale:,} rows a batch, ms")
    for heading in ("plan", "windows, s", "foreseen", "seen"):
        table.add_column(heading)
    foreseen, seen = [], []
    for plan in random_plans(Random(options.seed), options.plans, options.scale):
        with tempfile.TemporaryDirectory(prefix="braid-costs-") as folder:
            seen.append(seen_ms(plan, Path(folder)))
        foreseen.append(plan.costs(model).cpu * 1000)
        windows = " ".join(str(window) for window in plan.windows.values())
        table.add_row(plan.text, windows, f"{foreseen[-1]:.0f}", f"{seen[-1]:.0f}")
    Console().print(table)
    found = rank_correlation(foreseen, seen)
    mark = Mark("rank correlation, foreseen to seen", found, TARGET, at_least=True)
    print(mark)
    options.out.mkdir(parents=True, exist_ok=True)
    record = {mark.name: {"ratio": mark.ratio, "mark": mark.mark}}
    (options.out / "costs.json").write_text(json.dumps(record, indent=2) + "\n")
    return int(not mark.is_met)


if __name__ == "__main__":
    sys.exit(main())
