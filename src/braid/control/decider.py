"""What every decider promises, and what it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from braid.events import Event
    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from braid.record.enact import Command
    from braid.record.report import Report

Decider = TypeVar("Decider", covariant=True)


@dataclass(frozen=True)
class BatchSeen:
    """A batch that was committed: the records around it, its plan, and what workers said of it.

    It took `elapsed_ms`, and ended `now_ms` after the run began, by the engine's clock. The
    sources have about so many `unread_rows` yet, if they can tell. A `sample` is what was found
    beside batches of pairs of streams; another one `is_sampling`. When the run `is_ending`,
    nothing new begins.
    """

    before: Commit
    after: Commit
    plan: JoinPlan
    reports: Sequence[Report]
    elapsed_ms: int
    now_ms: int
    unread_rows: float | None = None
    sample: Mapping[frozenset[int], float] | None = None
    is_sampling: bool = False
    is_ending: bool = False

    @property
    def batch(self) -> int:
        """Its number."""
        return self.after.batch

    @property
    def input_rows(self) -> int:
        """The rows that it brought."""
        return sum(report.input_rows for report in self.reports)

    @property
    def advanced_us(self) -> int:
        """How far event time went on in it."""
        return (self.after.latest_us or 0) - (self.before.latest_us or 0)

    def of_worker(self, worker: int) -> list[Report]:
        """What one worker said, round by round."""
        return self._by_worker.get(worker, [])

    @cached_property
    def _by_worker(self) -> dict[int, list[Report]]:
        found: dict[int, list[Report]] = {}
        for report in self.reports:
            found.setdefault(report.worker, []).append(report)
        return found


@dataclass(frozen=True, slots=True)
class Decided(Generic[Decider]):
    """The decider to ask next time, what is to be done, and what is to be told.

    A decider is a frozen object. It knows no clock, no file and no chance: the same decider,
    shown the same, decides the same.
    """

    next: Decider
    commands: tuple[Command, ...] = ()
    events: tuple[Event, ...] = ()
