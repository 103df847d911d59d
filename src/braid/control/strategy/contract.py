"""What every strategy promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from braid.control.proposal import Proposal
    from braid.control.statistics import Snapshot


class Strategy(Protocol):
    """Reads one snapshot after every batch and proposes spills and relocations.

    A strategy is a frozen object, and what it remembers is in it: `decide` also gives the
    strategy to ask next time. Same strategy, same snapshot: same answer. Over-asking is fine;
    the guard refuses what is unsafe.
    """

    def decide(self, snapshot: Snapshot, /) -> tuple[Strategy, tuple[Proposal, ...]]:
        """The strategy to ask next time, and what to do now."""
        ...
