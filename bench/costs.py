"""Whether the plans that cost less by the cost model are those that keep workers less busy.

    python -m bench.costs [QUESTION …] [--plans 12] [--scale 600] [--seed 1]

Random plans join random streams; their costs differ by some times. Each runs through Spark on
two workers, after one that only makes Java compile: with one, Spark leaves shuffles out that a
query of any size needs. The model's constants are measured before, as a run with an optimizer
does, and it is told the true rates and selectivities. For a second of input, *foreseen* is what
operations take, and *seen* the CPU time of Spark's tasks: in the workers' Python, and in Java.
Planning the tasks, compiling and collecting garbage, which take Java as long again and longer
at this size, have nothing to do with rows, and are left out. Still, seen includes what no plan
can save and no constant knows: reading rows, receiving them, writing results, and the log. So
ranks are compared, by Spearman's correlation; and CPU time tells more than the clock where
others use the machine too.

* `key`: four streams on one key, by any tree;
* `chain`: four streams on three keys, so that rows are shuffled between rounds.

How many operations there are, and how much memory, is tested in `tests/oracle`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import urlopen

import psutil
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import braid
from bench.adapting import Mark
from bench.growth import join_all
from bench.options import benchmark_parser, out_folder
from braid.spark.calibrate import measure_costs
from tests.oracle.random_plans import LONGEST_S, random_plans, rank_correlation
from tests.oracle.steady import CHAIN, CLIQUE

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

    from braid.events import Event
    from braid.optimize import CostModel
    from tests.oracle.random_plans import Planned

QUESTIONS = {"key": (CLIQUE, (80, 1500)), "chain": (CHAIN, (30, 1500))}
"""Streams, and how many values their keys have at least and at most."""

WARM_UP = LONGEST_S + 3  # batches, of a second each
SETTLED = 8
TARGET = 0.9


class Used(NamedTuple):
    """CPU time of tasks, in milliseconds; Python's processes live as long as Spark does."""

    python: float
    java: float

    @classmethod
    def so_far(cls, spark: SparkSession) -> Used:
        """Since Spark began."""
        python = 0.0
        for process in psutil.Process(os.getpid()).children(recursive=True):
            with suppress(psutil.Error):
                if "pyspark.daemon" in process.cmdline():
                    times = process.cpu_times()
                    python += times.user + times.system
        context = spark.sparkContext
        stages = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
        with urlopen(stages) as answer:
            java = sum(stage["executorCpuTime"] for stage in json.load(answer))
        return cls(1000 * python, java / 1_000_000)


def measure(spark: SparkSession, plan: Planned) -> Used:
    """CPU time of a batch with full windows."""
    with tempfile.TemporaryDirectory(prefix="braid-costs-") as folder:
        return _measure(spark, plan, Path(folder))


def _measure(spark: SparkSession, plan: Planned, root: Path) -> Used:
    for second, rows in enumerate(plan.streams.rows(WARM_UP + SETTLED)):
        for name, table in rows.items():
            (root / "streams" / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(table, root / "streams" / name / f"{second:05d}.parquet")
    used: list[Used] = []

    def look(event: Event) -> None:
        if event.name == "batch":
            used.append(Used.so_far(spark))

    query = plan.streams.query(plan.windows)
    join_all(query, root / "streams", root / "run", look, workers=2, plan=plan.text)
    ends = zip(used[-1], used[WARM_UP - 1], strict=True)
    return Used(*((after - before) / SETTLED for after, before in ends))


def answer(
    spark: SparkSession, name: str, model: CostModel, options: argparse.Namespace
) -> Mark:
    """Run the plans of a question, and compare them."""
    table = Table(title=f"{name}, {180 * options.scale:,} rows a batch, ms")
    for heading in ("plan", "windows, s", "foreseen", "seen", "in Python", "in Java"):
        table.add_column(heading)
    streams, values = QUESTIONS[name]
    plans = random_plans(Random(options.seed), streams, options.plans, values, options.scale)
    foreseen, seen = [], []
    measure(spark, plans[-1])  # after which Java has compiled most of what it runs
    for plan in plans:
        used = measure(spark, plan)
        foreseen.append(plan.costs(model).cpu * 1000)
        seen.append(sum(used))
        windows = " ".join(str(window) for window in plan.windows.values())
        numbers = (foreseen[-1], seen[-1], *used)
        table.add_row(plan.text, windows, *(f"{number:.0f}" for number in numbers))
    Console().print(table)
    print(f"{name}: CPU seen is {mean(seen) / mean(foreseen):.1f} times what was foreseen")
    found = rank_correlation(foreseen, seen)
    return Mark(f"{name}, ranks foreseen to seen", found, TARGET, at_least=True)


def main() -> int:
    parser = benchmark_parser("bench.costs", __doc__)
    parser.add_argument("questions", nargs="*", choices=[*QUESTIONS, "all"], default="all")
    parser.add_argument("--plans", type=int, default=12)
    parser.add_argument("--scale", type=int, default=600, help="times 180 rows a second")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.small:
        options.plans, options.scale = 2, 2
    # Spark tells what tasks take in its pages alone, and forgets the first of many.
    spark = braid.session("local[2]", spark_ui_enabled="true", spark_ui_retainedStages="100000")
    model = measure_costs(several_keys=True)
    print(model)
    marks = []
    for name in QUESTIONS if "all" in options.questions else options.questions:
        marks.append(answer(spark, name, model, options))
        print(marks[-1])
    record = {mark.name: {"ratio": mark.ratio, "mark": mark.mark} for mark in marks}
    (out_folder(options) / "costs.json").write_text(json.dumps(record, indent=2) + "\n")
    return int(not options.small and not all(mark.is_met for mark in marks))


if __name__ == "__main__":
    sys.exit(main())
