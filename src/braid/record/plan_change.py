"""The course of a change of plan, from its first record to its last.

There are two ways. *Moving state*: the states that both plans have go over, and those that only
the new one has are made from them, some groups in each batch; the old plan shows all results
until they are complete. Where all that such a state is made of is in its own space, it is made
there; else the old plan feeds the new one through a shuffle. *Parallel track*: the new plan
starts without such states, and both run side by side. Let a result's deadline be the last event
time that could still join it. The old plan shows those with a deadline before a boundary, the
new one all others. The boundary is so late that all members of those others came after the
change had begun: the new plan has seen them all. Once the watermark has passed the boundary,
the old one has nothing more to show: that takes one window. Where a stream is far ahead of
another, it would take as long as that; such a track is not begun, or given up on the way. The
old plan has all rows, so it shows all results again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from braid.model.errors import PlanTooWide
from braid.model.query import UNBOUNDED_US
from braid.record.adopt import carry_over_states
from braid.record.change import Change
from braid.record.closing import earliest_pending_us
from braid.state.groups import ranges_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit


_MOST_WINDOWS = 100
_LEAST_PATIENCE_US = 3_600_000_000
"""A parallel track may last so many windows of event time, but an hour in any case."""


class Way(Enum):
    """How a plan is changed."""

    MOVING_STATE = "moving-state"
    PARALLEL_TRACK = "parallel-track"


def way_of(change: Change) -> Way:
    """The way of a change that is under way."""
    return Way.MOVING_STATE if change.fills else Way.PARALLEL_TRACK


@dataclass(frozen=True, slots=True)
class Start:
    """How a change begins: all plans side by side, and the record; or the `obstacle` to it.

    The states that are `fresh` do not go over.
    """

    way: Way
    both: JoinPlan
    commit: Commit
    fresh: frozenset[int]
    obstacle: str


def begun(
    commit: Commit, old: JoinPlan, new: str, way: Way, workers: Collection[int] = ()
) -> Start:
    """The beginning of a change to a new plan, of all workers or of some."""
    try:
        return _begun(commit, old, new, way, workers)
    except PlanTooWide as error:
        why = f"too many plans at once: {error.message}"
        return Start(way, old, commit, frozenset(), obstacle=why)


def _begun(
    commit: Commit, old: JoinPlan, new: str, way: Way, workers: Collection[int]
) -> Start:
    home = commit.placement(old.rounds.join_spaces[0])
    changing = home.of(*(workers or range(commit.workers)))
    trees, by_itself = _trees(commit), [[(tree,)] for tree in range(len(old.texts))]
    sources = [
        [*by_itself, [(tree,) for tree in own if not workers or worker in workers]]
        for worker, own in enumerate(_trees_of_workers(commit, old, trees))
    ]
    change = Change((), groups=ranges_of(changing) if workers else None)
    routes = replace(commit, plans=(*old.texts, new), change=change).routes
    both = old.replanned([*old.texts, new], routes=routes)
    carried, fresh = carry_over_states(commit, old, both, sources)
    change = replace(change, fresh=tuple(sorted(fresh)))
    why = ""
    if {old.texts[tree] for tree in trees[changing]} == {new}:
        why = "it is the plan already"
    elif both.is_ordered:
        why = "rows of a history join in order, which two plans would not keep"
    elif workers and len(both.rounds.join_spaces) > 1:
        why = "rows meet under several keys, and so on all workers"
    elif way is Way.PARALLEL_TRACK:
        change = replace(change, boundary_us=_boundary_us(commit, both))
        if max(stream.window_us for stream in both.query.streams) >= UNBOUNDED_US:
            why = "rows of a window without end would keep the old plan for ever"
        elif workers:
            why = "all workers would have to take it"
        else:
            why = hopelessness(replace(commit, change=change), both)
    elif not all(_is_made_at_home(both, state) for state in fresh):
        both = old.replanned([*old.texts, new], feeds=True)
        carried, fresh = carry_over_states(commit, old, both, sources)
        change = Change((), feeds=True)
        in_the_end = _drop_unused_trees(
            replace(carried, change=change), both, trees + len(old.texts)
        )
        if fresh or in_the_end[2]:
            why = "states that the new plan keeps together are shared out differently"
    return Start(
        way, both, replace(carried, change=change), fresh | both.rounds.fed, obstacle=why
    )


def _boundary_us(commit: Commit, both: JoinPlan) -> int:
    """The first deadline that no result with a row from before the change can have."""
    streams = zip(commit.newest_us, both.query.streams, strict=True)
    ends = (newest + stream.window_us for newest, stream in streams if newest is not None)
    return max(ends, default=0) + 1


def hopelessness(commit: Commit, both: JoinPlan) -> str:
    """Why a parallel track would last too long; nothing, if it would not.

    A stream that is years ahead, by a single row, puts the boundary as far ahead of the others;
    a stream that brings no more rows holds the watermark back.
    """
    assert commit.change is not None, "asked only of a change"
    boundary_us, streams = commit.change.boundary_us, both.query.streams
    reached = {
        stream.alias: newest
        for stream, newest in zip(streams, commit.newest_us, strict=True)
        if newest is not None
    }
    if boundary_us is None or not reached:
        return ""
    longest_us = max(stream.window_us for stream in streams) + both.lateness_us
    patience_us = max(_MOST_WINDOWS * longest_us, _LEAST_PATIENCE_US)
    first, last = max(reached, key=reached.__getitem__), min(reached, key=reached.__getitem__)
    is_far = boundary_us - reached[last] > patience_us
    if is_far or reached[first] - boundary_us > patience_us:
        return (
            f"stream {first} is at {_moment(reached[first])} and stream {last} at "
            f"{_moment(reached[last])}: both plans would run until the last has caught up"
        )
    return ""


def _moment(moment_us: int) -> str:
    return str(np.datetime64(moment_us, "us").astype("datetime64[s]"))


def given_up(commit: Commit, both: JoinPlan) -> tuple[Commit, JoinPlan]:
    """The record without a change that was under way: the old plans show all results again."""
    carried, left, _ = _drop_unused_trees(commit, both, _trees(commit))
    return carried, left


def _trees(commit: Commit) -> NDArray[np.int64]:
    """The tree that each group goes through, but for one that it changes to."""
    return np.array(commit.plan_of_group or (0,) * len(commit.assignments[0]))


def _trees_of_workers(
    commit: Commit, plan: JoinPlan, trees: NDArray[np.int64]
) -> list[list[int]]:
    """The trees that each worker's groups go through."""
    if len(plan.rounds.join_spaces) > 1:
        return [np.unique(trees).tolist()] * commit.workers  # all groups go through one
    home = commit.placement(plan.rounds.join_spaces[0])
    return [np.unique(trees[home.of(worker)]).tolist() for worker in range(commit.workers)]


def _is_made_at_home(plan: JoinPlan, state: int) -> bool:
    """Whether a join makes a state, and all that it is made of is in the state's own space."""
    makers = {plan.rounds.output_state(join) for join in range(len(plan.rounds.joins))}
    return state in makers and plan.may_wait(plan.rounds.states[state].space)


def is_over(commit: Commit, both: JoinPlan) -> bool:
    """Whether the new plan can go on alone."""
    assert commit.change is not None, "asked only of a change"
    if commit.change.fills:
        is_complete = not commit.change.fresh and not both.rounds.fed
        return is_complete or commit.change.filled >= both.groups
    low_us = earliest_pending_us(both, commit, len(both.rounds.rounds))
    assert commit.change.boundary_us is not None, "or nothing would be filled"
    return low_us is not None and low_us >= commit.change.boundary_us


def ended(commit: Commit, both: JoinPlan) -> tuple[Commit, JoinPlan]:
    """The record of a change's end, and the plans that are left, with all that they need."""
    assert commit.change is not None, "asked only of a change"
    trees = _trees(commit)
    trees[commit.change.marks(both.groups)] = len(both.texts) - 1
    carried, left, missing = _drop_unused_trees(commit, both, trees)
    assert not missing, "or it would not have begun"
    return carried, left


def resumed(commit: Commit, plan: JoinPlan, workers: int) -> tuple[Commit, JoinPlan]:
    """A record to go on from with so many workers, and the plans that it has come to.

    With another number of them, a change of some is given up: the old plans show all still.
    """
    both, change = _on_record(plan, commit), commit.change
    if change is None or change.groups is None or commit.workers == workers:
        return commit, both
    return given_up(commit, both)


def _on_record(plan: JoinPlan, commit: Commit) -> JoinPlan:
    """The same query by the plans that a record has come to."""
    feeds = commit.change is not None and commit.change.feeds
    return plan.replanned(commit.plans, feeds=feeds, routes=commit.routes)


def _drop_unused_trees(
    commit: Commit, both: JoinPlan, trees: NDArray[np.int64]
) -> tuple[Commit, JoinPlan, frozenset[int]]:
    """What is left of some plans, if each group goes through one tree, and which states lack.

    A text is there once.
    """
    texts = list(dict.fromkeys(both.texts[tree] for tree in np.unique(trees)))
    places = np.array([texts.index(text) if text in texts else -1 for text in both.texts])
    left = replace(
        commit,
        plans=tuple(texts),
        plan_of_group=tuple(places[trees].tolist()) if len(texts) > 1 else (),
        change=None,
    )
    new = both.replanned(texts, routes=left.routes)
    # What a tree that was fed has not, it has from the first.
    others = (0,) if commit.change is not None and commit.change.feeds else ()
    sources = [
        [[(t, *others) for t in own if places[t] == place] for place in range(len(texts))]
        for own in _trees_of_workers(commit, both, trees)
    ]
    carried, missing = carry_over_states(left, both, new, sources)
    return carried, new, missing
