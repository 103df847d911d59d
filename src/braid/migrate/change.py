"""The course of a change of plan, from its first record to its last.

There are two ways. *Moving state*: the states that both plans have go over, and those that only
the new one has are made from them, some groups in each batch; the old plan shows all results
until they are complete. *Parallel track*: the new plan starts without such states, and both run
side by side. Let a result's deadline be the last event time that could still join it. The old
plan shows those with a deadline before a boundary, the new one all others. The boundary is so
late that all members of those others came after the change had begun: the new plan has seen
them all. Once the watermark has passed the boundary, the old one has nothing more to show: that
takes one window.
"""

from __future__ import annotations

from dataclasses import replace
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


def obstacle(both: JoinPlan, fresh: frozenset[int], way: Way) -> str:
    """Why a plan cannot be changed in a way, or nothing."""
    if both.is_ordered:
        return "rows of a history join in order, which two plans would not keep"
    if way is Way.MOVING_STATE:
        makers = {both.rounds.made_into(join) for join in range(len(both.rounds.joins))}
        unmade = fresh - makers
        if unmade or not all(_is_at_home(both, state) for state in fresh):
            return (
                "a state of the new plan is arranged by a key that no state of the old one is"
            )
    elif any(stream.window_us >= UNBOUNDED_US for stream in both.query.streams):
        return "rows of a window without end would keep the old plan for ever"
    return ""


def _is_at_home(plan: JoinPlan, state: int) -> bool:
    """Whether all that a state is made of is in its own space."""
    return plan.may_wait(plan.rounds.states[state].space)


def begun(commit: Commit, old: JoinPlan, both: JoinPlan, way: Way) -> Commit:
    """The record of a change's beginning; there must be no obstacle to it."""
    carried, fresh = adopted(commit, old, both)
    assert not obstacle(both, fresh, way), "asked for before"
    boundary_us = None
    if way is Way.PARALLEL_TRACK:
        longest = max(stream.window_us for stream in both.query.streams)
        boundary_us = (commit.latest_us or 0) + longest + 1
    return replace(carried, change=Change(tuple(sorted(fresh)), boundary_us))


def is_over(commit: Commit, both: JoinPlan) -> bool:
    """Whether the new plan can go on alone."""
    assert commit.change is not None, "asked only of a change"
    if commit.change.fills:
        return commit.change.filled >= both.groups or not commit.change.fresh
    low_us = both.low_us(commit, len(both.rounds.rounds))
    assert commit.change.boundary_us is not None, "or nothing would be filled"
    return low_us is not None and low_us >= commit.change.boundary_us


def ended(commit: Commit, both: JoinPlan, new: JoinPlan) -> Commit:
    """The record of a change's end: the new plan, with all that it needs."""
    carried, missing = adopted(replace(commit, change=None), both, new)
    assert not missing, "both plans had all states of the new one"
    return carried
