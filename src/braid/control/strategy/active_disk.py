"""`active-disk`: spill where it hurts least (Liu and Rundensteiner, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from braid.control.strategy.lazy_disk import LazyDisk, partners
from braid.control.strategy.spilling import make_spill
from braid.model.checks import require_between

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from braid.control.proposal import Proposal, Spill
    from braid.control.statistics import Snapshot, WorkerLoad

    Place = tuple[int, int]
    """A space, and a group of it."""
    Forced = Mapping[Place, int]
    """Bytes on disk, by group."""


@dataclass(frozen=True, kw_only=True)
class ActiveDisk(LazyDisk):
    """As `lazy-disk`; and while memory is even, the least productive worker is made to spill.

    It is, if another one gave more than `lambda_` times its results per group since the last
    snapshot. Its room is then for groups of others that earn more. All that is pushed in this
    way and is on disk still stays below what the state exceeds all budgets by: `forced`
    remembers it, `forced_at_ms` when the last of it was pushed. Forced spills too are `tau_ms`
    apart. What was `asked` for counts once a snapshot shows that it was done.
    """

    lambda_: float = 2.0
    forced: Forced = field(default_factory=dict, metadata={"memory": True})
    asked: Forced = field(default_factory=dict, metadata={"memory": True})
    forced_at_ms: float | None = field(default=None, metadata={"memory": True})

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        super().__post_init__()
        require_between("lambda_", self.lambda_, 1, float("inf"))

    def decide(self, snapshot: Snapshot, /) -> tuple[ActiveDisk, tuple[Proposal, ...]]:
        """A relocation or a forced spill, and spills of those that overflow."""
        return self._informed(snapshot)._decide(snapshot)

    def _informed(self, snapshot: Snapshot) -> ActiveDisk:
        """What was asked for is forced, if it is on disk; of all that, what is there still."""
        disk = _on_disk(snapshot, {*self.forced, *self.asked})
        forced = {place: min(pushed, disk[place]) for place, pushed in self.forced.items()}
        happened = False
        for place, before in self.asked.items():
            pushed = max(0, disk[place] - before)
            happened |= pushed > 0
            forced[place] = forced.get(place, 0) + pushed
        return replace(
            self,
            forced={place: pushed for place, pushed in forced.items() if pushed > 0},
            asked={},
            forced_at_ms=snapshot.elapsed_ms if happened else self.forced_at_ms,
        )

    def _decide(self, snapshot: Snapshot) -> tuple[ActiveDisk, tuple[Proposal, ...]]:
        if self.uneven_pair(snapshot) is not None:
            moves = self.pair_relocations(snapshot)
            return self, (*moves, *self.overflow_spills(snapshot, partners(moves)))
        local = self.overflow_spills(snapshot)
        forced = self._forced_spill(snapshot, {spill.worker for spill in local})
        if forced is None:
            return self, local
        places = {(space, group) for space, ids in forced.groups.items() for group in ids}
        return replace(self, asked=_on_disk(snapshot, places)), (*local, forced)

    def _forced_spill(self, snapshot: Snapshot, busy: set[int]) -> Spill | None:
        last = self.forced_at_ms
        if last is not None and snapshot.elapsed_ms - last < self.tau_ms:
            return None
        allowed = _beyond_all_budgets(snapshot) - sum(self.forced.values())
        rates = {load.worker: _rate(load) for load in snapshot.workers if load.groups}
        able = [load for load in snapshot.workers if load.groups and load.memory_bytes > 0]
        if allowed <= 0 or len(able) < 2:
            return None
        poorest = min(able, key=lambda load: (rates[load.worker], load.worker))
        least, most = rates[poorest.worker], max(rates.values())
        if not most > self.lambda_ * least:
            return None
        if poorest.worker in snapshot.engaged | busy or not poorest.spillable:
            return None
        amount = min(self.k / 100 * poorest.memory_bytes, allowed)
        numbers = {"least_rate": least, "most_rate": most, "allowed_bytes": allowed}
        reason = "others are more productive"
        return make_spill(poorest, amount, self.chooser, snapshot.batch, reason, numbers)


def _on_disk(snapshot: Snapshot, places: Collection[tuple[int, int]]) -> dict[Place, int]:
    """The bytes that groups have on disk, whoever has them now."""
    found = dict.fromkeys(places, 0)
    for space in {space for space, _ in places}:
        groups = [group for where, group in places if where == space]
        for load in snapshot.workers:
            table = load.tables.get(space)
            if table is not None:
                at = table.places(groups)
                disk = zip(groups, at, table.disk_bytes[at], strict=True) if len(table) else ()
                found |= {(space, g): int(size) for g, spot, size in disk if spot >= 0}
    return found


def _rate(load: WorkerLoad) -> float:
    """Results per group since the last snapshot."""
    return load.made_results / load.groups


def _beyond_all_budgets(snapshot: Snapshot) -> float:
    """The bytes that no memory has room for, wherever they are."""
    state = sum(load.total_bytes for load in snapshot.workers)
    budgets = [load.budget_bytes for load in snapshot.workers]
    if None in budgets:
        return 0.0
    return float(state - sum(budget for budget in budgets if budget is not None))
