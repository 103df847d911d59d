"""What `auto` does about memory, from a forecast of how full workers will be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from braid.control.choose import Candidates, Chooser, first_reaching
from braid.control.strategy.relocating import PRODUCTIVE_FIRST, immovable, relocations
from braid.control.strategy.spilling import make_spill

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from braid.control.proposal import Spill
    from braid.control.statistics import Snapshot, WorkerLoad
    from braid.record.move import Move

_WORST_FIRST = Chooser("least-productive")
_LEAST_SPILL = 0.05
_POORER = 0.5
_NEARLY_FULL = 0.9


@dataclass(frozen=True)
class Forecast:
    """A snapshot, how much every worker grows per batch, and how full it will be."""

    snapshot: Snapshot
    growth: Mapping[int, float]
    horizon_batches: int
    fullest_first: tuple[WorkerLoad, ...]
    senders: tuple[WorkerLoad, ...]

    @classmethod
    def of(
        cls, snapshot: Snapshot, growth: Mapping[int, float], horizon_batches: int
    ) -> Forecast:
        """Sort the workers by how full they will be; who will overflow is a sender."""
        ahead = {load.worker: _fill(load, growth, horizon_batches) for load in snapshot.workers}
        order = sorted(snapshot.workers, key=lambda load: (-ahead[load.worker], load.worker))
        senders = tuple(load for load in order if ahead[load.worker] > 1)
        return cls(snapshot, growth, horizon_batches, tuple(order), senders)

    def ahead_bytes(self, load: WorkerLoad) -> float:
        """What a worker will have in memory."""
        return load.memory_bytes + self.horizon_batches * self.growth[load.worker]

    def free_bytes(self, load: WorkerLoad) -> float:
        """What a worker can take in and still have a batch of its own growth to go."""
        return load.room_bytes - self.growth[load.worker]


def overflow_spills(forecast: Forecast, chooser: Chooser) -> tuple[Spill, ...]:
    """A spill for every worker above its budget: what must go, and no crumbs."""
    spills = []
    for load in forecast.senders:
        budget = load.budget_bytes
        if budget is None or load.memory_bytes <= budget or not load.spillable:
            continue
        if load.worker in forecast.snapshot.engaged:
            continue
        growth = forecast.growth[load.worker]
        numbers = {
            "memory_bytes": load.memory_bytes,
            "budget_bytes": budget,
            "growth_bytes": growth,
        }
        # What is spilled beyond need may be what earns most: the rest is on disk by then.
        amount = max(load.memory_bytes - budget, _LEAST_SPILL * load.memory_bytes)
        batch = forecast.snapshot.batch
        reason = "more in memory than the budget"
        spill = make_spill(load, amount, chooser, batch, reason, numbers)
        if spill is not None:
            spills.append(spill)
    return tuple(spills)


def memory_relocations(
    forecast: Forecast, busy: Collection[int], worthwhile: float
) -> tuple[Move, ...]:
    """Moves that leave pairs of workers equally full, from those that will overflow.

    The fullest is paired with the emptiest, and so on, even if that one will overflow too:
    what is then spilled by both is spread better than what one spills alone.
    """
    if forecast.snapshot.moves:
        return ()
    taken = forecast.snapshot.engaged | set(busy)
    able = [x for x in forecast.fullest_first if x.movable and x.worker not in taken]
    overflowing = {load.worker for load in forecast.senders}
    moves: list[Move] = []
    for sender, receiver in zip(able[: len(able) // 2], reversed(able), strict=False):
        if sender.worker not in overflowing:
            break
        amount = min(_evening_bytes(forecast, sender, receiver), forecast.free_bytes(receiver))
        if amount < worthwhile * sender.memory_bytes:
            continue
        chosen, _ = PRODUCTIVE_FIRST.choose_within(
            sender.tables,
            amount,
            forecast.snapshot.batch,
            excluded=immovable(forecast.snapshot, sender),
        )
        numbers = {
            "sender_ahead_bytes": forecast.ahead_bytes(sender),
            "receiver_ahead_bytes": forecast.ahead_bytes(receiver),
            "asked_bytes": amount,
        }
        moves += relocations(sender, receiver, chosen, "it will overflow", numbers)
    return tuple(moves)


def make_room(forecast: Forecast, busy: Collection[int], worthwhile: float) -> Spill | None:
    """A spill where the worst groups earn little, for groups from where they earn more."""
    taken = forecast.snapshot.engaged | set(busy)
    able = [x for x in forecast.senders if x.spillable and x.worker not in taken]
    if len(able) < 2:
        return None
    worst = {load.worker: _worst_rate(forecast, load) for load in able}
    poor = min(able, key=lambda load: (worst[load.worker], load.worker))
    rich = min(able, key=lambda load: (-worst[load.worker], load.worker))
    if not worst[poor.worker] < _POORER * worst[rich.worker]:
        return None
    # Half of the difference will move: twice what is worth it must come free.
    room = 2 * max(_lacking_bytes(forecast, rich), worthwhile * rich.memory_bytes)
    amount = min(_lacking_bytes(forecast, poor) + room, poor.memory_bytes / 2)
    numbers = {"poor_rate": worst[poor.worker], "rich_rate": worst[rich.worker]}
    reason = "makes room for more productive groups"
    earning = {
        space: table.productivity() >= _POORER * worst[rich.worker]
        for space, table in poor.tables.items()
    }
    batch = forecast.snapshot.batch
    return make_spill(poor, amount, _WORST_FIRST, batch, reason, numbers, earning)


def _fill(load: WorkerLoad, growth: Mapping[int, float], horizon_batches: int) -> float:
    """The part of the budget that will be in use."""
    if load.budget_bytes is None:
        return 0.0
    ahead = load.memory_bytes + horizon_batches * growth[load.worker]
    return ahead / load.budget_bytes if load.budget_bytes > 0 else np.inf


def _lacking_bytes(forecast: Forecast, load: WorkerLoad) -> float:
    """How far above its budget a worker will be."""
    return max(0.0, forecast.ahead_bytes(load) - (load.budget_bytes or 0))


def _evening_bytes(forecast: Forecast, sender: WorkerLoad, receiver: WorkerLoad) -> float:
    """What to move now to have both equally full then; what moves takes its growth along."""
    ahead, budget = forecast.ahead_bytes(sender), sender.budget_bytes or 0
    if receiver.budget_bytes is None:
        later = ahead - _NEARLY_FULL * budget
    else:
        there, both = forecast.ahead_bytes(receiver), budget + receiver.budget_bytes
        share = receiver.budget_bytes / both if both > 0 else 0.5
        later = ahead * share - there * (1 - share)
    return later * sender.memory_bytes / ahead if ahead > 0 else 0.0


def _worst_rate(forecast: Forecast, load: WorkerLoad) -> float:
    """Results per byte of the groups that a worker would have to spill."""
    candidates = Candidates.of(load.tables)
    ranked = np.argsort(candidates.productivity, kind="stable")
    need = max(1.0, _lacking_bytes(forecast, load))
    places = first_reaching(ranked, candidates.memory_bytes, need)
    return float(candidates.productivity[places].mean()) if len(places) else 0.0
