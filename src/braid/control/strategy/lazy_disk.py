"""`lazy-disk`: move first, spill what nobody has room for (Liu and Rundensteiner, Algorithm 1).

The paper's timers are our batches: everything is looked at after each one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.control.strategy.relocating import RelocateSettings
from braid.control.strategy.spilling import SpillSettings

if TYPE_CHECKING:
    from braid.control.proposal import Proposal
    from braid.control.statistics import Snapshot
    from braid.record.move import Move


@dataclass(frozen=True, kw_only=True)
class LazyDisk(SpillSettings, RelocateSettings):
    """Uneven memory is evened out; a worker that overflows all the same spills on its own.

    Both are driven by memory alone. A worker that sends or receives spills at its next chance.
    """

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        SpillSettings.__post_init__(self)
        RelocateSettings.__post_init__(self)

    def decide(self, snapshot: Snapshot, /) -> tuple[LazyDisk, tuple[Proposal, ...]]:
        """A relocation, if one is due, and spills on workers that have no part in it."""
        moves = self.pair_relocations(snapshot)
        return self, (*moves, *self.overflow_spills(snapshot, partners(moves)))


def partners(moves: tuple[Move, ...]) -> frozenset[int]:
    """The workers that some relocations would engage."""
    return frozenset(worker for move in moves for worker in (move.sender, move.receiver))
