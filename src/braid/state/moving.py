"""The steps of a move, as changes of what is recorded: who has which groups, and what waits.

A move is a matter of the record and of the log alone. Files that travel spare the receiver the
reading of the log; should they not arrive, it makes them again, as after any loss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from braid.state.runs import decode
from braid.state.store import DISK, MEMORY
from braid.state.upkeep import attach, relinquished

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from braid.state.commit import Commit
    from braid.state.move import Move, Waiting
    from braid.state.runs import Run
    from braid.state.store import RunStore


def deactivated(commit: Commit, move: Move, spaces: Sequence[int]) -> Commit:
    """The groups' rows go to the receiver from now on, and wait; `spaces` are the states'.

    What waited at the sender waits at the receiver. Its own sections may have the groups' rows
    too, from a time of fewer workers, and from now on they do not count there.
    """
    assignment = list(commit.assignments[move.space])
    for first, end in move.groups:
        assignment[first:end] = [move.receiver] * (end - first)
    assignments, ladders = list(commit.assignments), list(commit.ladders)
    waiting = list(commit.waiting)
    assignments[move.space] = tuple(assignment)
    marks = move.marks(len(assignment))
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


def reactivated(commit: Commit, move: Move, arrived: Mapping[int, Run]) -> Commit:
    """The receiver has the groups: in files that have arrived, by state, or from the log."""
    assert move.runs is not None, "the sender has taken the groups out"
    ladders = list(commit.ladders)
    own = list(ladders[move.receiver])
    for state, run in move.runs.items():
        own[state] = attach(own[state], arrived.get(state, replace(run, tier="")))
    ladders[move.receiver] = tuple(own)
    moves = tuple(each for each in commit.moves if each != move)
    return replace(commit, ladders=tuple(ladders), moves=moves)


def installed(store: RunStore, run: Run, data: pa.Buffer) -> Run:
    """A run whose rows have arrived, encoded, written where there is room for it."""
    fresh = replace(store.describe(run.file, decode(data), data), backing=run.backing)
    return store.write(fresh, data, MEMORY if store.has_room(data.size) else DISK)


def settled(commit: Commit) -> Commit:
    """Nothing moves any more: every receiver has its groups, from the log."""
    for move in commit.moves:
        commit = reactivated(commit, move, {})
    return commit
