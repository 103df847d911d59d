"""`flux-memory`: even out the excess capacity of workers' memory (Shah et al., 6.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.control.strategy.flux_load import FluxLoad
from braid.control.strategy.flux_moves import memory_moves

if TYPE_CHECKING:
    from braid.control.statistics import Snapshot
    from braid.control.strategy.flux_round import FluxRound
    from braid.record.move import Move


@dataclass(frozen=True, kw_only=True)
class FluxMemory(FluxLoad):
    """In the rounds of `flux-load`, move one large group per pair; `th_util` has no say."""

    def moves(self, snapshot: Snapshot, round_: FluxRound) -> tuple[Move, ...]:
        """What to move at the end of a round."""
        return memory_moves(snapshot, self.th_imb)
