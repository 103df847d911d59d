"""The course of a change of plan, from its first record to its last.

There are two ways. *Moving state*: the states that both plans have go over, and those that only
the new one has are made from them, some groups in each batch; the old plan shows all results
until they are complete. Where all that such a state is made of is in its own space, it is made
there; else the old plan feeds the new one through a shuffle. *Parallel track*: the new plan
starts without such states, and both run side by side. Let a result's deadline be the last event
time that could still join it. The old plan shows those with a deadline before a boundary, the
new one all others. The boundary is so late that all members of those others came after the
change had begun: the new plan has seen them all. Once the watermark has passed the boundary,
the old one has nothing more to show: that takes one window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from braid.migrate.adopt import adopted
from braid.model.query import UNBOUNDED_US
from braid.state.change import Change

if TYPE_CHECKING:
    from braid.join.plan import JoinPlan
    from braid.state.commit import Commit


class Way(Enum):
    """How a plan is changed."""

    MOVING_STATE = "moving-state"
    PARALLEL_TRACK = "parallel-track"


def way_of(change: Change) -> Way:
    """The way of a change that is under way."""
    return Way.MOVING_STATE if change.fills else Way.PARALLEL_TRACK


@dataclass(frozen=True, slots=True)
class Start:
    """How a change begins: both plans side by side, and the record; or the `obstacle` to it.

    The states that are `fresh` do not go over.
    """

    way: Way
    both: JoinPlan
    commit: Commit
    fresh: frozenset[int]
    obstacle: str


def begun(commit: Commit, old: JoinPlan, new: str, way: Way) -> Start:
    """The beginning of a change to a new plan."""
    both = old.replanned([*old.texts, new])
    carried, fresh = adopted(commit, old, both)
    change = Change(tuple(sorted(fresh)))
    why = ""
    if both.is_ordered:
        why = "rows of a history join in order, which two plans would not keep"
    elif way is Way.PARALLEL_TRACK:
        longest_us = max(stream.window_us for stream in both.query.streams)
        change = replace(change, boundary_us=(commit.latest_us or 0) + longest_us + 1)
        if longest_us >= UNBOUNDED_US:
            why = "rows of a window without end would keep the old plan for ever"
    elif not all(_is_made_at_home(both, state) for state in fresh):
        both = old.replanned([*old.texts, new], feeds=True)
        carried, fresh = adopted(commit, old, both)
        change = Change((), feeds=True)
        if fresh:
            why = "states that the new plan keeps together are shared out differently"
    return Start(
        way, both, replace(carried, change=change), fresh | both.rounds.fed, obstacle=why
    )


def _is_made_at_home(plan: JoinPlan, state: int) -> bool:
    """Whether a join makes a state, and all that it is made of is in the state's own space."""
    makers = {plan.rounds.made_into(join) for join in range(len(plan.rounds.joins))}
    return state in makers and plan.may_wait(plan.rounds.states[state].space)


def is_over(commit: Commit, both: JoinPlan) -> bool:
    """Whether the new plan can go on alone."""
    assert commit.change is not None, "asked only of a change"
    if commit.change.fills:
        is_complete = not commit.change.fresh and not both.rounds.fed
        return is_complete or commit.change.filled >= both.groups
    low_us = both.low_us(commit, len(both.rounds.rounds))
    assert commit.change.boundary_us is not None, "or nothing would be filled"
    return low_us is not None and low_us >= commit.change.boundary_us


def ended(commit: Commit, both: JoinPlan, new: JoinPlan) -> Commit:
    """The record of a change's end: the new plan, with all that it needs."""
    carried, missing = adopted(replace(commit, change=None), both, new)
    assert not missing, "both plans had all states of the new one"
    return carried
