"""From the states of one plan to those of another: what holds the same goes over as it is.

Two states hold the same if they keep the same rows of the same streams, arranged by the same
key and shared out among the workers alike. Runs are immutable, and known to the log: so a state
goes over by its name in the commit record, and nothing is copied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from braid.state.commit import equal_shares

if TYPE_CHECKING:
    from braid.join.plan import JoinPlan
    from braid.state.commit import Commit


def adopted(commit: Commit, old: JoinPlan, new: JoinPlan) -> tuple[Commit, frozenset[int]]:
    """The record for another plan, and the states of it that begin empty and are not fed.

    Nothing may be on the move or owed: those are named by the places that they have in a plan.
    """
    assert not commit.owes, "what is owed is made before a plan changes"
    assert not any(commit.generations), "and what is on disk by itself is taken in"
    assignments = tuple(
        _assignment(commit, old, new, space) for space in range(len(new.rounds.spaces))
    )
    fed = new.rounds.fed
    sources = [
        None if state in fed else _source(commit, old, new, state, assignments)
        for state in range(len(new.rounds.states))
    ]
    ladders = tuple(
        tuple(() if source is None else own[source] for source in sources)
        for own in commit.ladders
    )
    return (
        replace(
            commit,
            plans=new.texts,
            assignments=assignments,
            ladders=ladders,
            # What is purged is known by round, and a round of another plan is another.
            purged_us=(None,) * len(new.rounds.rounds),
        ),
        frozenset(state for state, source in enumerate(sources) if source is None) - fed,
    )


def _assignment(commit: Commit, old: JoinPlan, new: JoinPlan, space: int) -> tuple[int, ...]:
    """How a space is shared out: like the one that has most of its states so far."""
    found: dict[int, int] = {}
    for state in new.states_of(space):
        for other in _alike(old, new, state):
            home = old.rounds.states[other].space
            found[home] = found.get(home, 0) + 1
    if not found:
        return equal_shares(new.groups, commit.workers)
    return commit.assignments[max(found, key=lambda home: found[home])]


def _source(
    commit: Commit,
    old: JoinPlan,
    new: JoinPlan,
    state: int,
    assignments: tuple[tuple[int, ...], ...],
) -> int | None:
    """The state that goes over into another, if there is one."""
    wanted = assignments[new.rounds.states[state].space]
    for other in _alike(old, new, state):
        if commit.assignments[old.rounds.states[other].space] == wanted:
            return other
    return None


def _alike(old: JoinPlan, new: JoinPlan, state: int) -> list[int]:
    """The states of the old plan that keep the same rows by the same key."""
    ours = new.rounds.states[state]
    by = new.rounds.spaces[ours.space]
    found = []
    for number, theirs in enumerate(old.rounds.states):
        home = old.rounds.spaces[theirs.space]
        same_key = home.keys == by.keys and (home.cluster is None) == (by.cluster is None)
        if same_key and (theirs.relation, theirs.waits) == (ours.relation, ours.waits):
            found.append(number)
    return found
