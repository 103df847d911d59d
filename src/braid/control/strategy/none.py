"""`none`: leave everything as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from braid.control.proposal import Proposal
    from braid.control.statistics import Snapshot


@dataclass(frozen=True, kw_only=True)
class NoAdaptation:
    """Propose nothing, whatever happens."""

    def decide(self, snapshot: Snapshot, /) -> tuple[NoAdaptation, tuple[Proposal, ...]]:
        """Nothing."""
        return self, ()
