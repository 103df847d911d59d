"""The steps of a move, as changes of what is recorded: who has which groups, and what waits.

A move is a matter of the record and of the log alone. Files that travel spare the receiver the
reading of the log; should they not arrive, it makes them again, as after any loss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from braid.record.closing import earliest_pending_us
from braid.state.upkeep import attach, relinquished

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from braid.record.move import Move, Waiting
    from braid.state.runs import SortedRun


def begin_move(plan: JoinPlan, commit: Commit, move: Move) -> Commit:
    """The record to go on from, with groups that are to be taken out in the next batch."""
    assert plan.may_wait(move.space), "rows that must not wait cannot wait for a move"
    since_us = earliest_pending_us(plan, commit, len(plan.rounds.rounds))
    spaces = [state.space for state in plan.rounds.states]
    return _deactivated(commit, replace(move, since_us=since_us), spaces)


def _deactivated(commit: Commit, move: Move, spaces: Sequence[int]) -> Commit:
    """The groups' rows go to the receiver from now on, and wait; `spaces` are the states'.

    What waited at the sender waits at the receiver. Its own sections may have the groups' rows
    too, from a time of fewer workers, and from now on they do not count there.
    """
    before = commit.placement(move.space)
    marks = move.marks(before.groups)
    assignments, ladders = list(commit.assignments), list(commit.ladders)
    waiting = list(commit.waiting)
    assignments[move.space] = before.given(marks, move.receiver).owners
    ladders[move.receiver] = tuple(
        relinquished(ladder, marks) if spaces[state] == move.space else ladder
        for state, ladder in enumerate(ladders[move.receiver])
    )
    handed_over = _parted(
        [each for each in waiting[move.sender] if each.space == move.space], move.space, marks
    )
    for worker in (move.sender, move.receiver):
        waiting[worker] = _parted(waiting[worker], move.space, ~marks)
    waiting[move.receiver] += handed_over
    return replace(
        commit,
        assignments=tuple(assignments),
        ladders=tuple(ladders),
        waiting=tuple(waiting),
        moves=(*commit.moves, move),
    )


def _parted(
    waiting: Sequence[Waiting], space: int, groups: NDArray[np.bool_]
) -> tuple[Waiting, ...]:
    """What waits, of a space only some groups' rows."""
    return tuple(
        replace(each, section=each.section.lacking(~groups)) if each.space == space else each
        for each in waiting
        if each.space != space or each.section.counting(groups).any()
    )


def reactivated(commit: Commit, move: Move, arrived: Mapping[int, SortedRun]) -> Commit:
    """The receiver has the groups: in files that have arrived, by state, or from the log."""
    assert move.runs is not None, "the sender has taken the groups out"
    ladders = list(commit.ladders)
    own = list(ladders[move.receiver])
    for state, run in move.runs.items():
        own[state] = attach(own[state], arrived.get(state, replace(run, tier="")))
    ladders[move.receiver] = tuple(own)
    moves = tuple(each for each in commit.moves if each.key != move.key)
    return replace(commit, ladders=tuple(ladders), moves=moves)


def settled(commit: Commit) -> Commit:
    """Nothing moves any more: every receiver has its groups, from the log."""
    for move in commit.moves:
        commit = reactivated(commit, move, {})
    return commit
