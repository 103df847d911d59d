"""`spill-only`: every worker sees to itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.control.strategy.spilling import SpillSettings

if TYPE_CHECKING:
    from braid.control.proposal import Proposal
    from braid.control.statistics import Snapshot


@dataclass(frozen=True, kw_only=True)
class SpillOnly(SpillSettings):
    """A worker with too much in memory pushes part of it to disk; nothing moves."""

    def decide(self, snapshot: Snapshot, /) -> tuple[SpillOnly, tuple[Proposal, ...]]:
        """The spills that are needed."""
        return self, self.overflow_spills(snapshot)
