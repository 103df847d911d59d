"""What it takes the driver to decide: one batch's counts of many groups, snapshot, decision.

    python -m bench.decisions [--workers 1000] [--groups 1000] [--rounds 3]

All groups have new counts and are scattered over the workers; every tenth worker is above its
budget, and the others soon will be. The guard's time is part of the decision.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.options import benchmark_parser
from braid.control.guard import vet
from braid.control.statistics import WorkerLoad
from braid.control.strategy import STRATEGIES, make_strategy
from braid.control.tally import Tally

TARGET_S = 0.5
BATCH_MS = 1000.0


class Load:
    """A large cluster's figures, the same for every strategy."""

    def __init__(self, workers: int, groups: int) -> None:
        self.workers, self.total = workers, workers * groups
        random = np.random.default_rng(1)
        self.owner = random.permutation(np.arange(self.total) % workers)
        self.owned = [np.flatnonzero(self.owner == worker) for worker in range(workers)]
        self.rows = random.integers(1, 50, self.total)
        self.results = random.integers(0, 200, self.total)
        self.state = random.integers(100, 10_000, self.total)

    def accumulate(self, tally: Tally, batch: int) -> None:
        """Every worker's report of a batch."""
        tally.begin()
        for ids in self.owned:
            state = self.state[ids] * (batch + 1)
            tally.count(0, batch, ids, self.rows[ids], self.results[ids])
            tally.measure(0, ids, state * 100, 0, state)

    def loads(self, batch: int) -> list[WorkerLoad]:
        """Every worker's own figures."""
        memory = np.bincount(self.owner, self.state * 100.0 * (batch + 1)).astype(int)
        budget = np.where(np.arange(self.workers) % 10, 1.1, 0.9) * memory
        busy = np.linspace(0.3, 1.0, self.workers) * BATCH_MS
        return [
            WorkerLoad(
                worker,
                int(memory[worker]),
                budget_bytes=int(budget[worker]),
                busy_ms=busy[worker],
                idle_ms=BATCH_MS - busy[worker],
                made_results=1000,
            )
            for worker in range(self.workers)
        ]


def measure(name: str, load: Load, rounds: int) -> tuple[float, float, float, int]:
    """The slowest of some rounds: accumulate, snapshot, decide, and how much was proposed."""
    strategy, tally = make_strategy(name), Tally({0: load.total})
    worst = (0.0, 0.0, 0.0, 0)
    for batch in range(rounds):
        loads = load.loads(batch)
        began = time.perf_counter()
        load.accumulate(tally, batch)
        counted = time.perf_counter()
        snapshot = tally.snapshot(batch, (batch + 1) * BATCH_MS, loads, {0: load.owner})
        frozen = time.perf_counter()
        strategy, proposals = strategy.decide(snapshot)
        verdict = vet(proposals, snapshot)
        ended = time.perf_counter()
        took = (counted - began, frozen - counted, ended - frozen, len(verdict.accepted))
        worst = max(worst, took, key=lambda parts: sum(parts[:3]))
    return worst


def main() -> int:
    parser = benchmark_parser("bench.decisions", __doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.small:
        options.workers, options.groups = 20, 20
    load = Load(options.workers, options.groups)
    table = Table(title=f"{options.workers:,} workers with {options.groups:,} groups each, s")
    for heading in ("strategy", "count", "snapshot", "decide", "all", "proposals"):
        table.add_column(heading, justify="left" if heading == "strategy" else "right")
    slowest = 0.0
    for name in STRATEGIES:
        *parts, proposals = measure(name, load, options.rounds)
        slowest = max(slowest, sum(parts))
        table.add_row(name, *(f"{part:.3f}" for part in (*parts, sum(parts))), str(proposals))
    Console().print(table)
    print(f"slowest: {slowest:.3f} s of {TARGET_S} s")
    return int(slowest > TARGET_S)


if __name__ == "__main__":
    sys.exit(main())
