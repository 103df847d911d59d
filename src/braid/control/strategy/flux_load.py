"""`flux-load`: even out how busy workers are, in rounds (Shah et al., 5.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from braid.control.strategy.flux_moves import load_moves
from braid.control.strategy.flux_round import FluxRound
from braid.control.strategy.lazy_disk import partners
from braid.control.strategy.spilling import SpillSettings
from braid.model.checks import require_between, require_from, require_up_to

if TYPE_CHECKING:
    from braid.control.proposal import Proposal
    from braid.control.statistics import Snapshot
    from braid.record.move import Move


@dataclass(frozen=True, kw_only=True)
class FluxLoad(SpillSettings):
    """Move one busy group per pair of workers and round; a worker that overflows spills.

    A pair is left alone, if the donor is less than `th_imb` times as busy as the receiver, or
    the receiver busier than `th_util`. `delta_min_ms` is the shortest collection of a round.
    """

    th_imb: float = 1.2
    th_util: float = 0.9
    delta_min_ms: float = 10
    round: FluxRound = field(default=FluxRound(), metadata={"memory": True})

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        super().__post_init__()
        require_from("th_imb", self.th_imb, 1)
        require_up_to("th_util", self.th_util, 1)
        require_between("delta_min_ms", self.delta_min_ms, 0, float("inf"))

    def decide(self, snapshot: Snapshot, /) -> tuple[Self, tuple[Proposal, ...]]:
        """The moves of a round that is over, and spills that are needed."""
        round_ = self.round.after(snapshot, self.delta_min_ms)
        moves: tuple[Move, ...] = ()
        if round_.is_over(snapshot):
            moves = self.moves(snapshot, round_)
            round_ = round_.decided(snapshot, bool(moves), self.delta_min_ms)
        spills = self.overflow_spills(snapshot, partners(moves))
        return replace(self, round=round_), (*moves, *spills)

    def moves(self, snapshot: Snapshot, round_: FluxRound) -> tuple[Move, ...]:
        """What to move at the end of a round."""
        return load_moves(snapshot, round_.utilisation(), self.th_imb, self.th_util)
