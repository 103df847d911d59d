"""`relocate-only`: even out the workers' memory, and never use a disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.control.strategy.relocating import RelocateSettings

if TYPE_CHECKING:
    from braid.control.proposal import Proposal
    from braid.control.statistics import Snapshot


@dataclass(frozen=True, kw_only=True)
class RelocateOnly(RelocateSettings):
    """Groups move from the fullest worker to the emptiest; nothing is spilled."""

    def decide(self, snapshot: Snapshot, /) -> tuple[RelocateOnly, tuple[Proposal, ...]]:
        """The relocation that is due."""
        return self, self.pair_relocations(snapshot)
