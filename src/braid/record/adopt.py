"""From the states of some plans to those of others: what holds the same goes over as it is.

Two states hold the same if they keep the same rows of the same streams, arranged by the same
key and shared out among the workers alike. Runs are immutable, and known to the log: so a state
goes over by its name in the commit record, and nothing is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from braid.plan.placement import ByHash

if TYPE_CHECKING:
    from braid.plan.join_plan import JoinPlan
    from braid.plan.rounds import Space
    from braid.record.commit import Commit
    from braid.state.runs import Ladder

Sources = Sequence[Collection[tuple[int, ...]]]
"""Of one worker, by tree of the new plans: the trees of the old ones that go over into it.

For each, those that a state may be taken from, best first.
"""


def carry_over_states(
    commit: Commit, old: JoinPlan, new: JoinPlan, sources: Sequence[Sources]
) -> tuple[Commit, frozenset[int]]:
    """The record for other plans, and the states of them that begin empty and are not fed.

    `sources` are by worker. Nothing may be on the move or owed: those are named by the places
    that they have in a plan.
    """
    assert not commit.owes, "what is owed is made before a plan changes"
    assert not any(commit.generations), "and what is on disk by itself is taken in"
    join_spaces = [_home(old, new, space) for space in range(len(new.rounds.spaces))]
    shares = ByHash.equal_shares(new.groups, commit.workers).owners
    assignments = tuple(shares if n is None else commit.assignments[n] for n in join_spaces)
    # Where rows have the same hash, groups are the same, and so is what is known of them.
    tallies = [None if n is None else commit.tallies[n] for n in join_spaces if commit.tallies]
    carried = replace(commit, plans=new.texts, assignments=assignments, tallies=tuple(tallies))
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


def _home(old: JoinPlan, new: JoinPlan, space: int) -> int | None:
    """The space whose groups a new one has: that which has most of its states so far.

    Or one that has the same key, if there is any.
    """
    by = new.rounds.spaces[space]
    join_spaces = Counter(n for n, home in enumerate(old.rounds.spaces) if _is_alike(home, by))
    for state in new.states_of(space):
        join_spaces.update(old.rounds.states[other].space for other in _alike(old, new, state))
    return join_spaces.most_common(1)[0][0] if join_spaces else None


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
    by_tree = {old.rounds.states[other].tree: other for other in alike}
    found = []
    for choice in trees[new.rounds.states[state].tree]:
        here = next((by_tree[tree] for tree in choice if tree in by_tree), None)
        if here is None:
            return None
        found.append(here)
    return tuple(found)


def _is_alike(one: Space, other: Space) -> bool:
    """Whether rows have the same hash in two spaces."""
    return one.keys == other.keys and (one.cluster is None) == (other.cluster is None)


def _alike(old: JoinPlan, new: JoinPlan, state: int) -> list[int]:
    """The states of the old plans that keep the same rows by the same key."""
    ours = new.rounds.states[state]
    by = new.rounds.spaces[ours.space]
    found = []
    for number, theirs in enumerate(old.rounds.states):
        home = old.rounds.spaces[theirs.space]
        if _is_alike(home, by) and (theirs.relation, theirs.waits) == (
            ours.relation,
            ours.waits,
        ):
            found.append(number)
    return found
