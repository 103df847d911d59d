"""A cluster in this process: the same workers on the same checkpoint, without Java."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from braid.engine.cluster import Evaluated
from braid.local.hashing import spark_hashes
from braid.local.split import LocalSplit, shared_hashes
from braid.record.report import Report
from braid.state.groups import marked
from braid.state.store import DISK, MEMORY
from braid.worker.round_orders import round_orders
from braid.worker.round_task import evaluate
from braid.worker.stores import worker_stores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from braid.engine.cluster import Pair
    from braid.local.hashing import Hashing
    from braid.local.split import StreamRows
    from braid.model.query import Query
    from braid.plan.join_plan import JoinPlan
    from braid.plan.placement import ByHash
    from braid.record.commit import Commit
    from braid.record.move import Move
    from braid.record.orders import Orders
    from braid.state.runs import SortedRun
    from braid.state.store import RunStore


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LocalJob:
    """A batch, and where its rows go."""

    rows: StreamRows
    plan: JoinPlan
    split: LocalSplit


@dataclass(slots=True)
class LocalCluster:
    """Workers whose files are below a `folder`; one does its part after the other.

    Keys are hashed as Spark does it, unless a test wants collisions.
    """

    query: Query
    workers: int
    folder: Path
    log: Path
    memory_bytes: int | None = None
    hashing: Hashing = spark_hashes
    on_close: Callable[[], None] = lambda: None

    def prepare(
        self, rows: StreamRows | None, plan: JoinPlan, placements: Sequence[ByHash]
    ) -> LocalJob:
        """Only note what is to be done."""
        return LocalJob(rows or {}, plan, LocalSplit(plan, placements, self.hashing))

    def run(self, job: LocalJob, orders: Orders) -> Future[Evaluated]:
        """Have every worker do each round, in this thread."""
        return _done(lambda: Evaluated(self._reports(job, orders)))

    def _reports(self, job: LocalJob, orders: Orders) -> list[Report]:
        told = list(orders.of_workers(job.plan))
        sent: list[pa.RecordBatch] = []
        for number in range(len(job.plan.rounds.rounds)):
            shares = job.split.shares(number, job.rows, sent, self.workers)
            sent = []
            for worker, share in enumerate(shares):
                step = round_orders(job.plan, told[worker], number, worker, "here")
                owned = [marked(each, job.plan.groups) for each in told[worker].owned]
                bounds = told[worker].own.memory_bytes, told[worker].own.firm
                sent += evaluate(step, self._stores(worker, owned, *bounds), share)
        texts = (text for batch in sent for text in batch.column("report").to_pylist())
        return [Report.from_json(json.loads(text)) for text in texts]

    def stores(self, commit: Commit, worker: int) -> dict[int, RunStore]:
        """A worker's stores by space, as a record has them."""
        owned = [commit.owned(space, worker) for space in range(len(commit.assignments))]
        return self._stores(worker, owned, self.memory_bytes, True)

    def _stores(
        self,
        worker: int,
        owned: Sequence[NDArray[np.bool_]],
        memory_bytes: int | None,
        is_firm: bool,
    ) -> dict[int, RunStore]:
        tiers = {tier: self.folder / tier / str(worker) for tier in (MEMORY, DISK)}
        for folder in tiers.values():
            folder.mkdir(0o700, parents=True, exist_ok=True)
        return worker_stores(owned, tiers, self.log, memory_bytes=memory_bytes, is_firm=is_firm)

    def ship(self, commit: Commit, move: Move) -> Future[Mapping[int, SortedRun]]:
        """Copy what a sender has taken out to its receiver, at once."""
        return _done(lambda: self._shipped(commit, move))

    def _shipped(self, commit: Commit, move: Move) -> Mapping[int, SortedRun]:
        assert move.runs is not None, "the sender has taken the groups out"
        sender, receiver = (
            self.stores(commit, worker)[move.space] for worker in (move.sender, move.receiver)
        )
        there = {state: sender.read_rows(run) for state, run in move.runs.items()}
        return {
            state: receiver.install(move.runs[state], rows)
            for state, rows in there.items()
            if rows is not None
        }

    def sample(
        self, rows: StreamRows, count: int, pairs: Sequence[Pair]
    ) -> Future[Mapping[Pair, float]]:
        """Count how many of all pairs join, by the hashes of the keys that streams share."""
        return _done(lambda: {pair: self._sampled(rows, pair) for pair in pairs})

    def _sampled(self, rows: StreamRows, pair: Pair) -> float:
        ours, theirs = (
            Counter(shared_hashes(self.query, rows, stream, pair).tolist())
            for stream in sorted(pair)
        )
        joined = sum(count * theirs[key] for key, count in ours.items())
        return min(1.0, max(1, joined) / max(1, ours.total() * theirs.total()))

    def resize(self, workers: int) -> None:
        """Go on with so many workers; those that are new find their state in the log."""
        self.workers = workers

    def check(self) -> None:
        """This process is there."""

    def close(self) -> None:
        """Let the files go."""
        self.on_close()


def _done(work: Callable[[], T]) -> Future[T]:
    """Work that is done at once, as something that was waited for."""
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
    return future
