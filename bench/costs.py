"""Whether the plans that cost less by the cost model are those that keep workers less busy.

    python -m bench.costs [QUESTION …] [--plans 12] [--scale 600] [--seed 1]

Random plans join random streams; their costs differ by some times. Each runs through Spark on
one worker. The model's constants are measured before, as a run with an optimizer does, and it
is told the true rates and selectivities. For a second of input, *foreseen* is what operations
take, *seen* the CPU time of the workers' processes, and *busy* how long the worker was at work,
in the median of batches with full windows. Seen and busy include what no plan can save and no
constant knows: receiving rows, writing results, and the log. So ranks are compared, of foreseen
and seen, by Spearman's correlation: CPU time tells more where others use the machine too.

* `key`: four streams on one key, by any tree;
* `chain`: four streams on three keys. Here rows are shuffled between rounds, which costs CPU
  that the model leaves out.

How many operations there are, and how much memory, is tested in `tests/oracle`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import TYPE_CHECKING

import psutil
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import braid
from bench.adapting import Mark
from bench.growth import join_all
from braid.runtime.calibrate import measure_costs
from tests.oracle.random_plans import LONGEST_S, random_plans, rank_correlation
from tests.oracle.steady import CHAIN, CLIQUE

if TYPE_CHECKING:
    from braid.events import Event
    from braid.optimize import CostModel
    from tests.oracle.random_plans import Planned

QUESTIONS = {"key": (CLIQUE, (80, 1500)), "chain": (CHAIN, (30, 1500))}
"""Streams, and how many values their keys have at least and at most."""

WARM_UP = LONGEST_S + 3  # batches, of a second each
SETTLED = 8
TARGET = 0.9


def used_ms() -> float:
    """CPU time of all of Spark's Python processes so far; what ends one is the end of Spark."""
    used = 0.0
    for process in psutil.Process(os.getpid()).children(recursive=True):
        with suppress(psutil.Error):
            if "pyspark.daemon" in process.cmdline():
                times = process.cpu_times()
                used += times.user + times.system
    return used * 1000


def measure(plan: Planned, root: Path) -> tuple[float, float]:
    """CPU time of a batch, and how long the worker was busy with it."""
    for second, rows in enumerate(plan.streams.rows(WARM_UP + SETTLED)):
        for name, table in rows.items():
            (root / "streams" / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(table, root / "streams" / name / f"{second:05d}.parquet")
    used: list[float] = []

    def look(event: Event) -> None:
        if event.name == "batch":
            used.append(used_ms())

    query = plan.streams.query(plan.windows)
    run = join_all(query, root / "streams", root / "run", look, workers=1, plan=plan.text)
    batches = [event for event in run.events() if event["event"] == "batch"]
    busy = [sum(w["busy_ms"] for w in batch["workers"]) for batch in batches[WARM_UP:]]
    return (used[-1] - used[WARM_UP - 1]) / SETTLED, median(busy)


def answer(name: str, model: CostModel, options: argparse.Namespace) -> Mark:
    """Run the plans of a question, and compare them."""
    table = Table(title=f"{name}, {180 * options.scale:,} rows a batch, ms")
    for heading in ("plan", "windows, s", "foreseen", "seen", "busy"):
        table.add_column(heading)
    streams, values = QUESTIONS[name]
    foreseen, seen = [], []
    for plan in random_plans(
        Random(options.seed), streams, options.plans, values, options.scale
    ):
        with tempfile.TemporaryDirectory(prefix="braid-costs-") as folder:
            cpu_ms, busy_ms = measure(plan, Path(folder))
        foreseen.append(plan.costs(model).cpu * 1000)
        seen.append(cpu_ms)
        windows = " ".join(str(window) for window in plan.windows.values())
        numbers = (foreseen[-1], cpu_ms, busy_ms)
        table.add_row(plan.text, windows, *(f"{number:.0f}" for number in numbers))
    Console().print(table)
    print(f"{name}: CPU seen is {mean(seen) / mean(foreseen):.1f} times what was foreseen")
    found = rank_correlation(foreseen, seen)
    return Mark(f"{name}, ranks foreseen to seen", found, TARGET, at_least=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("questions", nargs="*", choices=[*QUESTIONS, "all"], default="all")
    parser.add_argument("--plans", type=int, default=12)
    parser.add_argument("--scale", type=int, default=600, help="times 180 rows a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    options = parser.parse_args()
    braid.session("local[2]")
    model = measure_costs()
    print(model)
    marks = []
    for name in QUESTIONS if "all" in options.questions else options.questions:
        marks.append(answer(name, model, options))
        print(marks[-1])
    options.out.mkdir(parents=True, exist_ok=True)
    record = {mark.name: {"ratio": mark.ratio, "mark": mark.mark} for mark in marks}
    (options.out / "costs.json").write_text(json.dumps(record, indent=2) + "\n")
    return int(not all(mark.is_met for mark in marks))


if __name__ == "__main__":
    sys.exit(main())
