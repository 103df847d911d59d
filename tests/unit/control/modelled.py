"""A cluster in a few arrays, on which strategies can be tried: one space, rows as numbers.

A batch brings `inflow[group]` rows to every group. Each gives `rate[group]` results per row of
its group in memory; what it would have given with the rows on disk is owed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from braid.control.guard import vet
from braid.control.proposal import Spill
from braid.control.statistics import WorkerLoad
from braid.control.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from braid.control.guard import Refusal
    from braid.control.statistics import Snapshot
    from braid.control.strategy import Strategy
    from braid.record.move import Move

ROW_BYTES = 100
ROW_MS = 0.01


@dataclass
class Cluster:
    owner: NDArray[np.int64]
    workers: int
    strategy: Strategy
    budget_bytes: int | None = None
    rate: NDArray[np.float64] | float = 0.001
    slowness: NDArray[np.float64] | float = 1.0
    kept: float = 1.0  # the part of the state that is still in the window after a batch
    defer: bool = True
    move_batches: int = 2
    batch: int = 0
    elapsed_ms: float = 0.0
    last_ms: float | None = None
    results: float = 0.0
    most_over_bytes: float = 0.0
    spilled_bytes: int = 0
    busy_total_ms: float = 0.0
    accepted: list[Spill | Move] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    flying: list[tuple[int, Move]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memory = np.zeros(len(self.owner))
        self.disk = np.zeros(len(self.owner))
        self.owed = np.zeros(len(self.owner))
        self.tally = Tally({0: len(self.owner)})

    def run(
        self, batches: int, inflow: NDArray[np.float64] | Callable[[int], NDArray[np.float64]]
    ) -> Cluster:
        for _ in range(batches):
            self.step(inflow(self.batch) if callable(inflow) else inflow)
        return self

    def step(self, inflow: NDArray[np.float64]) -> None:
        rate = np.broadcast_to(self.rate, inflow.shape)
        produced = rate * inflow * self.memory
        self.owed += rate * inflow * self.disk
        self.memory = self.memory * self.kept + inflow
        self.disk *= self.kept
        self.results += produced.sum()
        snapshot = self._observe(inflow, produced)
        self._land()
        self.strategy, proposals = self.strategy.decide(snapshot)
        verdict = vet(proposals, snapshot)
        self.refused += verdict.refused
        for proposal in verdict.accepted:
            self._enact(proposal)
        self.batch += 1

    def per_worker(self, figures: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.owner, figures, self.workers)

    def count(self, kind: type) -> int:
        return sum(type(proposal) is kind for proposal in self.accepted)

    def _observe(self, inflow: NDArray[np.float64], produced: NDArray[np.float64]) -> Snapshot:
        everyone = np.arange(len(self.owner))
        memory_bytes = (self.memory * ROW_BYTES).astype(np.int64)
        disk_bytes = (self.disk * ROW_BYTES).astype(np.int64)
        rows = (self.memory + self.disk).astype(np.int64)
        self.tally.begin()
        self.tally.count(0, self.batch, everyone, inflow.astype(int), produced.astype(int))
        self.tally.measure(0, everyone, memory_bytes, disk_bytes, rows)
        busy = self.per_worker(inflow) * ROW_MS * self.slowness
        took = max(1.0, busy.max())
        self.elapsed_ms += took
        self.busy_total_ms += took
        memory, disk = self.per_worker(memory_bytes), self.per_worker(disk_bytes)
        if self.budget_bytes is not None:
            self.most_over_bytes = max(self.most_over_bytes, memory.max() - self.budget_bytes)
        output, came = self.per_worker(produced), self.per_worker(inflow)
        loads = [
            WorkerLoad(
                worker,
                int(memory[worker]),
                int(disk[worker]),
                self.budget_bytes,
                busy_ms=busy[worker],
                idle_ms=took - busy[worker],
                input_rows=int(came[worker]),
                made_results=int(output[worker]),
            )
            for worker in range(self.workers)
        ]
        return self.tally.snapshot(
            self.batch,
            self.elapsed_ms,
            loads,
            {0: self.owner},
            moves=[move for _, move in self.flying],
            last_relocation_ms=self.last_ms,
            defer=self.defer,
        )

    def _land(self) -> None:
        """Moves that end with this batch; the decision still sees them in flight."""
        for due, move in self.flying:
            if due <= self.batch:
                self.owner[list(move.groups)] = move.receiver
                self.last_ms = self.elapsed_ms
        self.flying = [flight for flight in self.flying if flight[0] > self.batch]

    def _enact(self, proposal: Spill | Move) -> None:
        self.accepted.append(proposal)
        if isinstance(proposal, Spill):
            ids = list(proposal.groups[0])
            self.spilled_bytes += proposal.amount_bytes
            self.disk[ids] += self.memory[ids]
            self.memory[ids] = 0
        else:
            self.flying.append((self.batch + self.move_batches, proposal))
