"""Moving groups between workers while batches go on: the protocol, step by step.

    compute      a strategy has chosen the groups, and the guard has nothing against it
    deactivate   from this batch on their rows go to the receiver, and wait there
    quiesce      that batch is committed: the sender has joined all it ever will, and has taken
                 the groups out of its states
    send         the cluster takes them to the receiver, beside the batches
    receive      they have arrived, or must be made from the log
    reactivate   the receiver joins them from the next batch on, beginning with what waited

Until `quiesce` is on record, a crash undoes the move: the last commit knows nothing of it. From
then on a crash finishes it, from the log. All moves are on record, but for those that have only
been computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from braid.control.decider import Decided
from braid.events import Relocated
from braid.record.enact import BeginMove, Reactivate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from braid.control.decider import BatchSeen
    from braid.record.commit import Commit
    from braid.record.enact import Command
    from braid.record.move import Move, MoveKey
    from braid.state.runs import SortedRun


class Stage(StrEnum):
    """How far a move has come."""

    COMPUTE = "compute"
    DEACTIVATE = "deactivate"
    QUIESCE = "quiesce"
    SEND = "send"
    RECEIVE = "receive"
    REACTIVATE = "reactivate"


@dataclass(frozen=True, slots=True)
class Arrival:
    """What has come of a move's runs at the receiver, by state; a `fault` says why not more."""

    runs: Mapping[int, SortedRun]
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Relocation:
    """The moves that have been `computed`, and are to begin with the next batch."""

    computed: tuple[Move, ...] = ()

    def under_way(self, commit: Commit) -> tuple[Move, ...]:
        """All moves, those that have not begun too."""
        return (*commit.moves, *self.computed)

    def compute(self, batch: int, moves: Sequence[Move]) -> Decided[Relocation]:
        """Take on moves, to be begun with the next batch."""
        events = tuple(_event(move, Stage.COMPUTE, batch) for move in moves)
        return Decided(Relocation((*self.computed, *moves)), events=events)

    def give_up_computed(self) -> Relocation:
        """Forget what has only been computed."""
        return Relocation()

    def before_batch(
        self, commit: Commit, ready: Collection[MoveKey], arrivals: Mapping[MoveKey, Arrival]
    ) -> Decided[Relocation]:
        """What the next batch starts from: groups that have arrived are active, others stop.

        Only those stop that the batch's job is `ready` for: planning it anew would take as long
        as a small batch does, and a move can wait.
        """
        commands: list[Command] = []
        events: list[Relocated] = []
        batch = commit.batch + 1
        for move in commit.moves:
            arrival = arrivals.get(move.key)
            if arrival is not None:
                there = replace(move, runs=arrival.runs)
                events.append(_event(there, Stage.RECEIVE, batch, arrival.fault))
                events.append(_event(replace(move, runs=None), Stage.REACTIVATE, batch))
                commands.append(Reactivate(move, arrival.runs))
        left: list[Move] = []
        for move in self.computed:
            if move.key in ready:
                commands.append(BeginMove(move))
                events.append(_event(move, Stage.DEACTIVATE, batch))
            else:
                left.append(move)
        return Decided(Relocation(tuple(left)), tuple(commands), tuple(events))

    def taken_out(self, seen: BatchSeen) -> tuple[Move, ...]:
        """The moves whose senders have taken the groups out in a batch: they are to be sent."""
        stopped = {move.key for move in seen.before.moves if move.runs is None}
        return tuple(move for move in seen.after.moves if move.key in stopped)

    def observe(self, seen: BatchSeen) -> Decided[Relocation]:
        """Tell of what has been taken out, and is sent now."""
        events = (
            _event(move, stage, seen.batch)
            for move in self.taken_out(seen)
            for stage in (Stage.QUIESCE, Stage.SEND)
        )
        return Decided(self, events=tuple(events))


def _event(move: Move, stage: Stage, batch: int, reason: str = "") -> Relocated:
    known = move.runs or {}
    return Relocated(
        batch=batch,
        step=stage.value,
        sender=move.sender,
        receiver=move.receiver,
        space=move.space,
        groups=len(move.groups),
        rows=sum(run.rows for run in known.values()),
        bytes=sum(run.length for run in known.values()),
        reason=reason or move.reason,
        numbers=dict(move.numbers),
    )
