"""What a change of plan means for a round of a batch: `braid.record.change` has its words.

While states of the last tree are being filled, a part of the groups is complete there, and the
rest has nothing yet. Along the parallel track, each tree shows the results that are its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from braid.state.runs import of_groups

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from braid.plan.join_plan import JoinPlan
    from braid.plan.rounds import Segment
    from braid.record.change import Change
    from braid.worker.probe import Partial


@dataclass(frozen=True, slots=True)
class Changing:
    """A plan whose last tree is to take the place of others."""

    plan: JoinPlan
    change: Change

    def is_fresh(self, state: int | None) -> bool:
        """Whether a state begins empty, and is to be filled from those beside it."""
        return state in self.change.fresh

    def filling(self, owned: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of a worker's groups, those that the batch makes complete."""
        groups = owned.copy()
        groups[: self.change.filled] = groups[self.change.filling :] = False
        return groups

    def complete(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of those groups that are complete after the batch."""
        return of_groups(rows, np.arange(self.plan.groups) < self.change.filling)

    def running(self, segment: Segment, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that run through a segment.

        The last join of the tree that is not complete yet has nobody to work for. Its fresh
        states get what new rows make of groups that are complete; of the others they get all
        when those are filled. Where it is fed, only rows of complete groups come.
        """
        if not self.change.fills:
            return rows
        if segment.join == self.plan.rounds.roots[-1]:
            return rows.slice(0, 0)
        is_fresh = self.is_fresh(self.plan.rounds.output_state(segment.join))
        return self.complete(rows) if is_fresh else rows

    def shown(self, segment: Segment, partial: Partial, *, is_final: bool) -> Partial:
        """Of trees that all show results, each shows its own.

        A deadline only falls as members come together: what the last need not show, it need not
        make.
        """
        boundary_us = self.change.boundary_us
        if boundary_us is None:
            return partial
        if segment.join > self.plan.rounds.roots[-2]:
            return partial.kept(partial.deadline >= boundary_us)
        return partial.kept(partial.deadline < boundary_us) if is_final else partial
