"""`auto`: ours, which needs no tuning."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from braid.control.choose import Chooser
from braid.control.strategy.auto_memory import Forecast, make_room, memory_relocations
from braid.control.strategy.auto_memory import overflow_spills as spills_of
from braid.control.strategy.auto_work import work_relocations
from braid.control.strategy.lazy_disk import partners
from braid.control.strategy.trend import LoadTrend
from braid.model.checks import require_between, require_from

if TYPE_CHECKING:
    from braid.control.proposal import Proposal, Spill
    from braid.control.statistics import Snapshot
    from braid.record.move import Move

_BUSY_BATCHES = 4
"""How busy workers are is believed after so many batches."""


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Foresee who will overflow; move while there is room, and spill only what must go.

    * Foresight: all memory's growth per batch, parted among workers as recent rows are, tells
      who will be above its budget `horizon_batches` ahead. As nothing is done before, a run
      with ample memory pays nothing, as under `none`.
    * Moving: whoever will overflow sends productive groups to the workers with most room, until
      both are foreseen to be equally full. So all memory is in use before any disk is, as in
      `lazy-disk`, and what is spilled in the end is spread evenly, and cleaned up in parallel.
    * Spilling: who is above the budget spills the groups that are least productive: what is too
      much, or 5 % of its memory. The less is spilled, the more results come on time.
    * Making room: if moving is no help, and one worker's worst groups earn less than half of
      what another's worst do, they are spilled first, for the other to move in, as in
      `active-disk`.
    * Work: without any need for memory, groups move from workers that are `imbalance` times as
      busy as the average, if the time won in `payback_batches` is more than the move costs, by
      what inserting so many rows costs now. So it moves less than `flux-load` does.
    * Hysteresis: a move is at least `worthwhile` of the sender's memory, evens out and never
      overshoots. `horizon_batches` lie between two moves for work, and half as many between
      two spills that make room.

    The last four settings are those of `Chooser`, for what a worker spills when it overflows.
    """

    horizon_batches: int = 8
    payback_batches: int = 20
    imbalance: float = 1.25
    worthwhile: float = 0.1
    gain_ms: float = 20
    order: str = "least-productive"
    recent: bool = False
    theta_t: float = 10
    seed: int = 0
    trend: LoadTrend = field(default=LoadTrend(), metadata={"memory": True})
    made_room: int | None = field(default=None, metadata={"memory": True})
    moved_work: int | None = field(default=None, metadata={"memory": True})

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        require_from("horizon_batches", self.horizon_batches, 1)
        require_from("payback_batches", self.payback_batches, 1)
        require_between("imbalance", self.imbalance, 1, float("inf"))
        require_between("worthwhile", self.worthwhile, 0, 1)
        require_from("gain_ms", self.gain_ms, 0)
        _ = self.chooser

    @property
    def chooser(self) -> Chooser:
        """Which groups to spill when memory overflows."""
        return Chooser(self.order, self.recent, self.theta_t, self.seed)

    def decide(self, snapshot: Snapshot, /) -> tuple[Auto, tuple[Proposal, ...]]:
        """Spills that are needed now, and moves or spills for what is foreseen."""
        trend = self.trend.after(snapshot)
        forecast = Forecast.of(snapshot, trend.growth(snapshot), self.horizon_batches)
        spills = spills_of(forecast, self.chooser)
        busy = {spill.worker for spill in spills}
        moves = memory_relocations(forecast, busy, self.worthwhile)
        after = replace(self, trend=trend)
        if not moves and forecast.senders and self._rested(self.made_room, snapshot, 0.5):
            room = make_room(forecast, busy, self.worthwhile)
            if room is not None:
                spills = (*spills, room)
                after = replace(after, made_room=snapshot.batch)
        if not moves and not spills and not forecast.senders:
            moves = self._work_moves(forecast, trend)
            if moves:
                after = replace(after, moved_work=snapshot.batch)
        trend = trend.with_spills(spills)
        after = replace(after, trend=trend.without_work() if moves else trend)
        return after, _without_overlap(moves, spills)

    def _work_moves(self, forecast: Forecast, trend: LoadTrend) -> tuple[Move, ...]:
        snapshot = forecast.snapshot
        if snapshot.moves or trend.busy_batches < _BUSY_BATCHES:
            return ()
        if not self._rested(self.moved_work, snapshot):
            return ()
        return work_relocations(
            forecast, trend.busy_ms, self.imbalance, self.payback_batches, self.gain_ms
        )

    def _rested(self, last: int | None, snapshot: Snapshot, part: float = 1.0) -> bool:
        return last is None or snapshot.batch - last >= part * self.horizon_batches


def _without_overlap(
    moves: tuple[Move, ...], spills: tuple[Spill, ...]
) -> tuple[Proposal, ...]:
    """Both, but no move to or from a worker that spills."""
    spilling = {spill.worker for spill in spills}
    return (*spills, *(move for move in moves if not partners((move,)) & spilling))
