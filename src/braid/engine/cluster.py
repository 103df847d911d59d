"""Where batches are evaluated: all that the engine knows of the world below it.

`braid.spark` has a cluster of Spark's executors, `braid.local` one in this process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from braid.plan.join_plan import JoinPlan
    from braid.plan.placement import ByHash
    from braid.record.commit import Commit, ResultFile
    from braid.record.move import Move
    from braid.record.orders import Orders
    from braid.record.report import Report
    from braid.state.runs import SortedRun

    Pair: TypeAlias = frozenset[int]
    """Two streams."""

BatchInput: TypeAlias = Any
"""The rows of a batch, which can be read again and again; their cluster alone knows them."""

Job: TypeAlias = Any
"""A batch that a cluster has prepared; only that cluster looks into it."""


class TryAgain(Exception):
    """What failed may succeed when it is done again; its text is the reason, in one line.

    Any other error is final.
    """


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What came of a batch: reports of workers, and the files of rows that were kept apart."""

    reports: Sequence[Report]
    bad_parts: tuple[ResultFile, ...] = ()


class Cluster(Protocol):
    """Evaluates batches on workers, which it gives state and takes rows to.

    A job may be run again, if it is prepared again; it changes nothing that a record names.
    Futures may be done already when they are returned. Their errors, and those of `prepare`,
    are `TryAgain` or final.
    """

    def prepare(
        self, rows: BatchInput | None, plan: JoinPlan, placements: Sequence[ByHash]
    ) -> Job:
        """Get ready to evaluate a batch by a plan, with a placement for each space.

        A batch without rows is None.

        This may be done in another thread, while a job runs.
        """

    def run(self, job: Job, orders: Orders) -> Future[Evaluated]:
        """Evaluate a batch. One at a time."""

    def ship(self, commit: Commit, move: Move) -> Future[Mapping[int, SortedRun]]:
        """Take groups that a sender has taken out to their receiver, beside batches.

        Returns the runs that have arrived, by state. Others are made from the log.
        """

    def sample(
        self, rows: BatchInput, count: int, pairs: Sequence[Pair]
    ) -> Future[Mapping[Pair, float]]:
        """Estimate selectivities from the `count` rows of a batch, beside batches."""

    def resize(self, workers: int) -> None:
        """Have another number of workers from the next `prepare` on; nothing is under way."""

    def check(self) -> None:
        """Raise an error if the cluster is gone."""

    def close(self) -> None:
        """Let go of the workers; whatever still runs counts no more."""
