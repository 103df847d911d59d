"""How often optimizers find a qualified plan, how near they come, and how long they take.

    python -m bench.optimizers [--count 100] [--most-streams 20]

Three questions, on the settings of `braid.experiment.random_graphs`:

* with one pair of budgets for all graphs, as in the dissertation: of the settings that have a
  qualified plan (the exhaustive search says so, for up to 8 streams), how many do both find?
* the same with budgets that are hard to keep: what some plan costs that nothing beats, and a
  little more;
* how long does it take, and with which power of the number of streams does it grow?
"""

from __future__ import annotations

import math
import sys
from random import Random
from statistics import mean, median
from time import perf_counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.options import benchmark_parser
from braid.experiment.random_graphs import BUDGET, random_settings
from braid.experiment.zhu_optimizers import EXHAUSTIVE_UP_TO
from braid.optimize import bjtree_init, exhaustive, mjoin_init, skyline

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid import JoinGraph
    from braid.optimize import Plan

STRATEGIES: dict[str, Callable[..., Plan]] = {
    "mjoin-init": mjoin_init,
    "bjtree-init": bjtree_init,
}
SLACKS = (1.0, 0.3, 0.1, 0.03)
TARGET_SHARE, TARGET_MS = 0.97, 50.0


def common_budgets(count: int) -> tuple[int, dict[str, int]]:
    """Settings with a qualified plan, and in how many of them each strategy finds one."""
    possible, found = 0, dict.fromkeys(STRATEGIES, 0)
    for streams in track(range(3, EXHAUSTIVE_UP_TO + 1), "one pair of budgets"):
        for graph in random_settings(streams, count):
            options = {"cpu": BUDGET.cpu, "memory": BUDGET.memory}
            if exhaustive(graph, **options) is not None:
                possible += 1
                for name, strategy in STRATEGIES.items():
                    found[name] += strategy(graph, **options).qualified
    return possible, found


def tight_budgets(count: int) -> tuple[int, dict[tuple[str, float], int]]:
    """The same for budgets just above some plan that nothing beats; each is possible."""
    tried, found = 0, {(name, slack): 0 for name in STRATEGIES for slack in SLACKS}
    for streams in track(range(3, EXHAUSTIVE_UP_TO + 1), "tight budgets"):
        for number, graph in enumerate(random_settings(streams, count)):
            plan = a_best_plan(graph, Random(number))
            tried += 1
            for name, strategy in STRATEGIES.items():
                for slack in SLACKS:
                    budgets = plan.cpu * (1 + slack), plan.memory * (1 + slack)
                    answer = strategy(graph, cpu=budgets[0], memory=budgets[1])
                    found[name, slack] += answer.qualified
    return tried, found


def a_best_plan(graph: JoinGraph, random: Random) -> Plan:
    """One of all plans that nothing beats."""
    best = skyline(graph, seconds=math.inf)
    assert best.complete
    return random.choice(best.plans)


def times(count: int, most_streams: int) -> dict[str, dict[int, list[float]]]:
    """Milliseconds by strategy and number of streams; a search in vain takes longest."""
    taken: dict[str, dict[int, list[float]]] = {name: {} for name in STRATEGIES}
    taken |= {f"{name}, in vain": {} for name in STRATEGIES}
    for streams in track(range(3, most_streams + 1), "times"):
        graphs = list(random_settings(streams, count))
        for name, strategy in STRATEGIES.items():
            taken[name][streams] = [
                timed(strategy, graph, cpu=BUDGET.cpu, memory=BUDGET.memory) for graph in graphs
            ]
            taken[f"{name}, in vain"][streams] = [
                timed(strategy, graph, cpu=0.0) for graph in graphs
            ]
    return taken


def timed(strategy: Callable[..., Plan], graph: JoinGraph, **budgets: float) -> float:
    began = perf_counter()
    strategy(graph, **budgets)
    return (perf_counter() - began) * 1000


def power(by_streams: dict[int, list[float]]) -> float:
    """The slope of the medians' logarithms: time grows with this power of the streams."""
    points = [(math.log(n), math.log(median(ms))) for n, ms in by_streams.items() if n >= 8]
    across, upwards = mean(x for x, _ in points), mean(y for _, y in points)
    rise = sum((x - across) * (y - upwards) for x, y in points)
    return rise / sum((x - across) ** 2 for x, _ in points)


def main() -> int:
    parser = benchmark_parser("bench.optimizers", __doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--most-streams", type=int, default=20)
    options = parser.parse_args()
    if options.small:
        options.count, options.most_streams = 2, 9
    console = Console()
    possible, found = common_budgets(options.count)
    tried, hard = tight_budgets(options.count)
    table = Table(title=f"qualified plans found, of {possible} and {tried} possible")
    headings = ["one pair of budgets", *(f"{slack:.0%} above a best plan" for slack in SLACKS)]
    for heading in ("strategy", *headings):
        table.add_column(heading)
    for name in STRATEGIES:
        shares = [found[name] / possible, *(hard[name, slack] / tried for slack in SLACKS)]
        table.add_row(name, *(f"{share:.1%}" for share in shares))
    console.print(table)
    taken = times(options.count, options.most_streams)
    table = Table(title=f"ms for {options.most_streams} streams, and growth")
    for heading in ("strategy", "median", "mean", "most", "grows with the power"):
        table.add_column(heading)
    for name, by_streams in taken.items():
        last = by_streams[options.most_streams]
        row = (median(last), mean(last), max(last))
        table.add_row(name, *(f"{ms:.1f}" for ms in row), f"{power(by_streams):.1f}")
    console.print(table)
    slowest = max(median(by_streams[options.most_streams]) for by_streams in taken.values())
    share = min(found.values()) / possible
    print(
        f"found {share:.1%} of {TARGET_SHARE:.0%}, median {slowest:.1f} ms of {TARGET_MS:g} ms"
    )
    return int(not options.small and (share < TARGET_SHARE or slowest > TARGET_MS))


if __name__ == "__main__":
    sys.exit(main())
