"""The beginning of a move, by what a plan knows of its states and of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.state.move import Move
from braid.state.moving import deactivated

if TYPE_CHECKING:
    from braid.join.plan import JoinPlan
    from braid.state.commit import Commit
    from braid.state.runs import Ranges


def begin_move(
    plan: JoinPlan, commit: Commit, space: int, groups: Ranges, sender: int, receiver: int
) -> Commit:
    """The record to go on from, with groups that are to be taken out in the next batch."""
    assert plan.may_wait(space), "rows that must not wait cannot wait for a move"
    since_us = plan.low_us(commit, len(plan.rounds.rounds))
    move = Move(space, groups, sender, receiver, since_us)
    return deactivated(commit, move, [state.space for state in plan.rounds.states])
