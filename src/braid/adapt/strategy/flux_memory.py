"""`flux-memory`: even out the excess capacity of workers' memory (Shah et al., 6.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.adapt.strategy.flux_load import FluxLoad
from braid.adapt.strategy.flux_moves import memory_moves

if TYPE_CHECKING:
    from braid.adapt.proposal import Relocate
    from braid.adapt.statistics import Snapshot
    from braid.adapt.strategy.flux_round import Round


@dataclass(frozen=True, kw_only=True)
class FluxMemory(FluxLoad):
    """In the rounds of `flux-load`, move one large group per pair; `th_util` has no say."""

    def moves(self, snapshot: Snapshot, round_: Round) -> tuple[Relocate, ...]:
        """What to move at the end of a round."""
        return memory_moves(snapshot, self.th_imb)
