"""Spills that a worker needs for itself: more in memory than it may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.control.choose import Chooser
from braid.control.proposal import Spill
from braid.model.checks import require_up_to

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from braid.control.choose import Masks
    from braid.control.statistics import Snapshot, WorkerLoad


@dataclass(frozen=True, kw_only=True)
class SpillSettings:
    """When a worker spills, how much, and which groups.

    Above `theta_m` of its budget it pushes `k` percent of its memory, and in any case as much
    as brings it back to that mark. The other settings are those of `Chooser`.
    """

    k: float = 30
    theta_m: float = 1.0
    order: str = "least-productive"
    recent: bool = False
    theta_t: float = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        require_up_to("k", self.k, 100)
        require_up_to("theta_m", self.theta_m, 1)
        _ = self.chooser

    @property
    def chooser(self) -> Chooser:
        """Which groups to spill."""
        return Chooser(self.order, self.recent, self.theta_t, self.seed)

    def overflow_spills(
        self, snapshot: Snapshot, engaged: Collection[int] = ()
    ) -> tuple[Spill, ...]:
        """A spill for every worker above its mark that is not engaged in something else."""
        spills = (
            self._overflow_spill(load, snapshot.batch)
            for load in snapshot.workers
            if load.worker not in snapshot.engaged and load.worker not in engaged
        )
        return tuple(spill for spill in spills if spill is not None)

    def _overflow_spill(self, load: WorkerLoad, batch: int) -> Spill | None:
        if load.budget_bytes is None or not load.spillable:
            return None
        mark = self.theta_m * load.budget_bytes
        if load.memory_bytes <= mark:
            return None
        numbers = {
            "memory_bytes": load.memory_bytes,
            "mark_bytes": mark,
            "k": self.k,
        }
        amount = max(self.k / 100 * load.memory_bytes, load.memory_bytes - mark)
        return make_spill(
            load, amount, self.chooser, batch, "more in memory than the mark", numbers
        )


def make_spill(
    load: WorkerLoad,
    amount_bytes: float,
    chooser: Chooser,
    batch: int,
    reason: str,
    numbers: Mapping[str, float],
    excluded: Masks | None = None,
) -> Spill | None:
    """A spill of some amount, if the worker has anything in memory that is not excluded."""
    groups, chosen_bytes = chooser.choose(
        load.tables, amount_bytes, batch, worker=load.worker, excluded=excluded
    )
    if not groups:
        return None
    asked = {"asked_bytes": amount_bytes}
    return Spill(load.worker, groups, chosen_bytes, reason, {**numbers, **asked})
