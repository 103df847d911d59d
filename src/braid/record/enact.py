"""Commands that change a record between two batches, and the one place that carries them out.

The last record is *committed*. What the next batch starts from is a *draft*: that record, with
the commands that were given since. Jobs that are planned ahead, orders and attempts are all
made from one draft, so that rows go where the record says. Nothing of a draft outlives a crash.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from braid.record.moving import begin_move, reactivated
from braid.record.plan_change import begun, ended, given_up
from braid.record.resharing import reshared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from braid.record.move import Move
    from braid.record.plan_change import Way
    from braid.state.runs import SortedRun


@dataclass(frozen=True, slots=True)
class RecordDraft:
    """A record to go on from, and the plan that it has come to."""

    commit: Commit
    plan: JoinPlan


@dataclass(frozen=True, slots=True)
class BeginMove:
    """Have groups stop: their rows wait at the receiver, and the next batch takes them out."""

    move: Move


@dataclass(frozen=True, slots=True)
class Reactivate:
    """Have the receiver join groups: in runs that have `arrived`, or made from the log."""

    move: Move
    arrived: Mapping[int, SortedRun]


@dataclass(frozen=True, slots=True)
class BeginChange:
    """Have a new plan beside the old one, of all workers or of some."""

    plan: str
    way: Way
    workers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FillUpTo:
    """Have the next batch make fresh states complete, for so many groups in all."""

    groups: int


@dataclass(frozen=True, slots=True)
class EndChange:
    """Go on with the new plan alone."""


@dataclass(frozen=True, slots=True)
class GiveUpChange:
    """Go on with the old plan alone."""


@dataclass(frozen=True, slots=True)
class Resize:
    """Share all state out anew, among another number of workers; nothing may move."""

    workers: int


Command = Resize | BeginMove | Reactivate | BeginChange | FillUpTo | EndChange | GiveUpChange


def enact(draft: RecordDraft, command: Command) -> RecordDraft:
    """The draft after a command."""
    commit, plan = draft.commit, draft.plan
    match command:
        case Resize(workers):
            assert not commit.moves, "groups that move have a place on the way"
            spaces = [state.space for state in plan.rounds.states]
            return replace(draft, commit=reshared(commit, spaces, workers))
        case BeginMove(move):
            return replace(draft, commit=begin_move(plan, commit, move))
        case Reactivate(move, arrived):
            return replace(draft, commit=reactivated(commit, move, arrived))
        case BeginChange(new, way, workers):
            start = begun(commit, plan, new, way, workers)
            assert not start.obstacle, f"a change that cannot be: {start.obstacle}"
            return RecordDraft(start.commit, start.both)
        case FillUpTo(groups):
            assert commit.change is not None, "there is nothing to fill without a change"
            filling = min(groups, plan.groups)
            change = replace(commit.change, filling=filling)
            return replace(draft, commit=replace(commit, change=change))
        case EndChange():
            return RecordDraft(*ended(commit, plan))
        case GiveUpChange():
            return RecordDraft(*given_up(commit, plan))


def enact_all(draft: RecordDraft, commands: Iterable[Command]) -> RecordDraft:
    """The draft after some commands, one after the other."""
    for command in commands:
        draft = enact(draft, command)
    return draft
