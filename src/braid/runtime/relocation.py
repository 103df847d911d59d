"""Moving groups between workers while batches go on: the protocol, step by step.

    compute      a strategy has chosen the groups, and the guard has nothing against it
    deactivate   from this batch on their rows go to the receiver, and wait there
    quiesce      that batch is committed: the sender has joined all it ever will, and has taken
                 the groups out of its states
    send         a Spark job takes them to the receiver, beside the batches
    receive      they have arrived, or must be made from the log
    reactivate   the receiver joins them from the next batch on, beginning with what waited

Until `quiesce` is on record, a crash undoes the move: the last commit knows nothing of it. From
then on a crash finishes it, from the log.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from braid.events import Relocated
from braid.join.moves import begin_move
from braid.model.failpoints import reach
from braid.runtime.faults import explain_fault, unlogged
from braid.state.moving import reactivated
from braid.state.runs import ranges_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from braid.adapt.proposal import Relocate
    from braid.join.plan import JoinPlan
    from braid.state.commit import Commit
    from braid.state.move import Move
    from braid.state.runs import Run

    Send = Callable[[Commit, Move], dict[int, Run]]


class Stage(StrEnum):
    """How far a move has come."""

    COMPUTE = "compute"
    DEACTIVATE = "deactivate"
    QUIESCE = "quiesce"
    SEND = "send"
    RECEIVE = "receive"
    REACTIVATE = "reactivate"


_ORDER = tuple(Stage)


def begun(plan: JoinPlan, commit: Commit, orders: Sequence[Relocate]) -> Commit:
    """A record of a plan with moves that have begun."""
    for order in orders:
        what = order.space, ranges_with(order.groups)
        commit = begin_move(plan, commit, *what, order.sender, order.receiver)
    return commit


@dataclass(slots=True)
class _Course:
    """One move, from its beginning to its end."""

    order: Relocate
    stage: Stage = Stage.COMPUTE
    cargo: Future[dict[int, Run]] | None = None

    def advance(self, to: Stage) -> None:
        """Go on to the next stage; there is no other way."""
        assert _ORDER.index(to) == _ORDER.index(self.stage) + 1, (self.stage, to)
        self.stage = to

    def found_in(self, commit: Commit) -> Move:
        """The move as it is on record; a worker sends groups of a space once at a time."""
        place = self.order.space, self.order.sender
        return next(move for move in commit.moves if (move.space, move.sender) == place)


@dataclass(slots=True)
class Relocation:
    """Drives all moves of a run.

    `send` brings the files of one to its receiver; `on_arrival` is told, in another thread,
    when groups are ready to be joined again.
    """

    plan: JoinPlan
    send: Send
    on_arrival: Callable[[], None] = lambda: None
    _courses: list[_Course] = field(default_factory=list, init=False)
    _porter: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "braid-moves"), init=False
    )

    @property
    def is_under_way(self) -> bool:
        """Whether anything moves, or is about to."""
        return bool(self._courses)

    @property
    def has_arrived(self) -> bool:
        """Whether groups are ready to be joined again."""
        return any(each.cargo is not None and each.cargo.done() for each in self._courses)

    def give_up_unbegun(self) -> None:
        """Forget what has only been computed."""
        self._courses = [each for each in self._courses if each.stage is not Stage.COMPUTE]

    @property
    def orders(self) -> tuple[Relocate, ...]:
        """What is under way."""
        return tuple(course.order for course in self._courses)

    def begin(self, batch: int, orders: Sequence[Relocate]) -> Iterator[Relocated]:
        """Take on moves, to be begun with the next batch."""
        for order in orders:
            course = _Course(order)
            self._courses.append(course)
            yield self._event(course, batch)

    @property
    def unbegun(self) -> tuple[Relocate, ...]:
        """What has only been computed."""
        return tuple(each.order for each in self._courses if each.stage is Stage.COMPUTE)

    def before(
        self, commit: Commit, ready: Sequence[Relocate]
    ) -> tuple[Commit, list[Relocated]]:
        """What the next batch starts from: groups that have arrived are active, others stop.

        Only those stop that the batch's job is `ready` for: planning it anew would take as long
        as a small batch does, and a move can wait.
        """
        events = []
        for course in list(self._courses):
            batch = commit.batch + 1
            if course.cargo is not None and course.cargo.done():
                arrived, fault = _unpacked(course.cargo)
                course.advance(Stage.RECEIVE)
                events.append(self._event(course, batch, arrived, reason=fault))
                commit = reactivated(commit, course.found_in(commit), arrived)
                course.advance(Stage.REACTIVATE)
                events.append(self._event(course, batch))
                self._courses.remove(course)
                reach("groups reactivated", batch)
            elif course.stage is Stage.COMPUTE and course.order in ready:
                commit = begun(self.plan, commit, [course.order])
                course.advance(Stage.DEACTIVATE)
                events.append(self._event(course, batch))
        return commit, events

    def after(self, commit: Commit) -> Iterator[Relocated]:
        """Send what has been taken out by the batch that was just committed."""
        for course in self._courses:
            if course.stage is Stage.DEACTIVATE:
                move = course.found_in(commit)
                course.advance(Stage.QUIESCE)
                yield self._event(course, commit.batch, move.runs)
                course.cargo = self._porter.submit(self._carry, commit, move)
                course.cargo.add_done_callback(lambda _: self.on_arrival())
                course.advance(Stage.SEND)
                yield self._event(course, commit.batch, move.runs)

    def _carry(self, commit: Commit, move: Move) -> dict[int, Run]:
        with unlogged():  # what goes wrong is told by an event
            return self.send(commit, move)

    def wait(self) -> None:
        """Wait until all that was sent has arrived, or cannot."""
        for course in self._courses:
            if course.cargo is not None:
                course.cargo.exception()

    def close(self) -> None:
        """Send nothing more."""
        self._porter.shutdown(wait=False, cancel_futures=True)

    def _event(
        self,
        course: _Course,
        batch: int,
        runs: Mapping[int, Run] | None = None,
        reason: str = "",
    ) -> Relocated:
        order = course.order
        known = runs or {}
        return Relocated(
            batch=batch,
            step=course.stage.value,
            sender=order.sender,
            receiver=order.receiver,
            space=order.space,
            groups=len(order.groups),
            rows=sum(run.rows for run in known.values()),
            bytes=sum(run.length for run in known.values()),
            reason=reason or order.reason,
            numbers=dict(order.numbers),
        )


def _unpacked(cargo: Future[dict[int, Run]]) -> tuple[dict[int, Run], str]:
    """What has arrived, or nothing and why."""
    try:
        return cargo.result(), ""
    except Exception as fault:
        return {}, f"not sent, and made from the log instead: {explain_fault(fault)}"
