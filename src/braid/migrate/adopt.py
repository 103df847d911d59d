"""From the states of some plans to those of others: what holds the same goes over as it is.

Two states hold the same if they keep the same rows of the same streams, arranged by the same
key and shared out among the workers alike. Runs are immutable, and known to the log: so a state
goes over by its name in the commit record, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from braid.state.commit import equal_shares

if TYPE_CHECKING:
    from braid.join.plan import JoinPlan
    from braid.state.commit import Commit
    from braid.state.runs import Ladder

Sources = Sequence[Collection[int]]
"""Of one worker, by tree of the new plans: the trees of the old ones that go over into it."""


def adopted(
    commit: Commit, old: JoinPlan, new: JoinPlan, sources: Sequence[Sources]
) -> tuple[Commit, frozenset[int]]:
    """The record for other plans, and the states of them that begin empty and are not fed.

    `sources` are by worker. Nothing may be on the move or owed: those are named by the places
    that they have in a plan.
    """
    assert not commit.owes, "what is owed is made before a plan changes"
    assert not any(commit.generations), "and what is on disk by itself is taken in"
    assignments = tuple(
        _assignment(commit, old, new, space) for space in range(len(new.rounds.spaces))
    )
    carried = replace(commit, plans=new.texts, assignments=assignments)
    ladders: list[list[Ladder]] = [[] for _ in commit.ladders]
    fresh = set()
    for state in range(len(new.rounds.states)):
        found = [_sources(commit, carried, old, new, state, trees) for trees in sources]
        if state in new.rounds.fed or None in found:
            fresh.add(state)
            found = [()] * len(found)
        for mine, theirs, all_of_them in zip(ladders, commit.ladders, found, strict=True):
            runs = (run for source in all_of_them or () for run in theirs[source])
            mine.append(tuple(sorted(runs, key=lambda run: run.oldest_us)))
    return (
        replace(
            carried,
            ladders=tuple(map(tuple, ladders)),
            # What is purged is known by round, and a round of another plan is another.
            purged_us=(None,) * len(new.rounds.rounds),
        ),
        frozenset(fresh) - new.rounds.fed,
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


def _sources(
    commit: Commit, carried: Commit, old: JoinPlan, new: JoinPlan, state: int, trees: Sources
) -> tuple[int, ...] | None:
    """The states of a worker that go over into another; None if one of its trees has none."""
    wanted = carried.assignments[new.rounds.states[state].space]
    alike = [
        other
        for other in _alike(old, new, state)
        if commit.assignments[old.rounds.states[other].space] == wanted
    ]
    if state == new.rounds.grouped:
        return tuple(alike)
    found = []
    for tree in trees[new.rounds.states[state].tree]:
        here = [other for other in alike if old.rounds.states[other].tree == tree]
        if not here:
            return None
        found.append(here[0])
    return tuple(found)


def _alike(old: JoinPlan, new: JoinPlan, state: int) -> list[int]:
    """The states of the old plans that keep the same rows by the same key."""
    ours = new.rounds.states[state]
    by = new.rounds.spaces[ours.space]
    found = []
    for number, theirs in enumerate(old.rounds.states):
        home = old.rounds.spaces[theirs.space]
        same_key = home.keys == by.keys and (home.cluster is None) == (by.cluster is None)
        if same_key and (theirs.relation, theirs.waits) == (ours.relation, ours.waits):
            found.append(number)
    return found
