"""`flux-hybrid`: memory once anything is on disk, and work until then (Shah et al., 6.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.control.strategy.flux_load import FluxLoad
from braid.control.strategy.flux_moves import load_moves, memory_moves

if TYPE_CHECKING:
    from braid.control.statistics import Snapshot
    from braid.control.strategy.flux_round import FluxRound
    from braid.record.move import Move


@dataclass(frozen=True, kw_only=True)
class FluxHybrid(FluxLoad):
    """In the rounds of `flux-load`, even out what is scarce."""

    def moves(self, snapshot: Snapshot, round_: FluxRound) -> tuple[Move, ...]:
        """What to move at the end of a round."""
        if any(load.disk_bytes for load in snapshot.workers):
            return memory_moves(snapshot, self.th_imb)
        return load_moves(snapshot, round_.utilisation(), self.th_imb, self.th_util)
