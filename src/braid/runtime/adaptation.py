"""What the driver does about uneven load: count, freeze, ask the strategy, vet, give orders."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING

from braid.adapt.guard import vet
from braid.adapt.proposal import Relocate, Spill
from braid.adapt.sizes import parse_size
from braid.adapt.statistics import Move, WorkerLoad
from braid.adapt.strategy import STRATEGIES, parameters_of, parse_strategy
from braid.adapt.strategy.none import NoAdaptation
from braid.adapt.tally import Tally
from braid.events import CleanedUp, Refused, Spilled
from braid.join.chores import Chores
from braid.model.checks import require_known
from braid.model.errors import BraidError
from braid.state.runs import ranges_with
from braid.state.store import DISK, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.adapt.strategy.contract import Strategy
    from braid.events import Event
    from braid.join.plan import JoinPlan
    from braid.join.report import Report
    from braid.runtime.pacing import Pacing
    from braid.state.commit import Commit
    from braid.state.runs import Ranges

_MARK = 0.9  # of the budget: sizes are estimates, and a batch comes on top
_DEFAULT = "auto"  # where there is a budget; else there is nothing to be kept to
_PATIENCE = 8  # batches until a worker whose disk was full tries again
_SLICE_BYTES = 8 << 20  # what a worker cleans up in a batch, if its budget is not larger


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """A worker's budget, what becomes of state beyond it, and when results owed are made.

    With `defers`, groups on disk are not probed, and owe results until they are cleaned up: at
    the `end` of the input, when a worker is `idle` enough to have room too, or `never` unless
    they must.
    """

    memory_bytes: int | None = None
    defers: bool = True
    strategy: Strategy = field(default_factory=NoAdaptation)
    cleanup: str = "end"


def memory_settings(
    memory: str | int | None = None,
    overflow: str = "probe",
    strategy: str | Strategy | None = None,
    spill_policy: str | None = None,
    spill_percent: float | None = None,
    cleanup: str = "end",
) -> MemorySettings:
    """What a user asked for, checked."""
    require_known("overflow", overflow, ("probe", "defer"))
    require_known("time of clean-up", cleanup, ("end", "idle", "never"))
    if strategy is None:
        strategy = "none" if memory is None else _DEFAULT
    if isinstance(strategy, str):
        strategy = _parsed(strategy, spill_policy, spill_percent)
    return MemorySettings(
        memory_bytes=None if memory is None else _budget_bytes(memory),
        defers=overflow == "defer",
        strategy=strategy,
        cleanup=cleanup,
    )


def _budget_bytes(memory: str | int) -> int:
    """A budget in bytes, in which a worker can keep something."""
    size = parse_size(memory) if isinstance(memory, str) else memory
    if not isinstance(size, Real) or not size >= 1:
        raise BraidError(
            f"a memory of {memory!r} has no room for any state",
            hint="give each worker 1 byte or more, such as '200MB', or leave the memory out: "
            "it is unbounded then",
        )
    return size


def _parsed(text: str, spill_policy: str | None, spill_percent: float | None) -> Strategy:
    """A strategy by name, with what was said of spilling besides."""
    name = text.partition(" ")[0]
    known = parameters_of(name)
    others: dict[str, str | float] = {}
    for what, parameter, value in (
        ("spill policy", "order", spill_policy),
        ("spill percentage", "k", spill_percent),
    ):
        if value is None:
            continue
        if parameter not in known:
            takers = (each for each in STRATEGIES if parameter in parameters_of(each))
            raise BraidError(
                f"the strategy {name} takes no {what}",
                hint=f"leave it out, or choose one that does: {', '.join(takers)}",
            )
        others[parameter] = value
    return parse_strategy(text, {"theta_m": _MARK}, **others)


class Adaptation:
    """The account of all groups, and what is to be done in the next batch."""

    def __init__(self, plan: JoinPlan, settings: MemorySettings, commit: Commit) -> None:
        """Begin with nothing to do; what is on disk may owe something, as far as we know."""
        self.settings = settings
        self.strategy = settings.strategy
        self.spills: dict[int, Spill] = {}
        self.full_since: dict[int, int] = {}  # batches at which workers' disks were found full
        self.moves: tuple[Relocate, ...] = ()
        self.last_move_ms: int | None = None
        self._recorded: set[tuple[int, Ranges, int, int]] = set()
        self.is_ending = False
        self.loads: list[WorkerLoad] = []
        self.owing_bytes = sum(each.length for own in commit.generations for each in own)
        self.wanted = False
        self.now_ms = 0
        self.replan(plan, commit)

    @property
    def is_active(self) -> bool:
        """Whether there is a strategy that may ever ask for something."""
        return not isinstance(self.strategy, NoAdaptation)

    def chores(self, commit: Commit, pacing: Pacing, *, changes: bool) -> tuple[Chores, ...]:
        """What each worker is to do in the batch after a commit.

        While the plan `changes`, or is about to, no row waits and nothing is deferred; what is
        owed is made.
        """
        moving = commit.moving
        if changes:
            self.ask_for_cleanup()
        return tuple(
            replace(
                self._chores(worker, worker in moving, may_defer=not changes),
                share=None if changes else pacing.share(worker),
                may_wait=pacing.buffer_rows is not None,
                counts=self.is_active or pacing.buffer_rows is not None,
            )
            for worker in range(commit.workers)
        )

    def replan(self, plan: JoinPlan, commit: Commit) -> None:
        """Begin an account of a plan's groups, with what a record knows of them."""
        self.plan, self.spills = plan, {}
        spaces = range(len(plan.rounds.spaces))
        self.tally = Tally(dict.fromkeys(spaces, plan.groups), known=commit.tallies)
        self.fixed = frozenset(space for space in spaces if not plan.may_wait(space))

    def _chores(self, worker: int, is_moving: bool, *, may_defer: bool) -> Chores:
        spill = self.spills.get(worker)
        is_bounded = self.settings.memory_bytes is not None
        return Chores(
            defers=is_bounded and self.settings.defers and may_defer,
            spill={} if spill is None else {s: ranges_with(g) for s, g in spill.groups.items()},
            clean_bytes=self._clean_bytes(worker),
            memory_bytes=self.settings.memory_bytes,
            firm=is_bounded and is_moving,
        )

    def _clean_bytes(self, worker: int) -> int:
        """How much a worker is to clean up; while it spills, nothing."""
        if worker in self.spills or not self.owing_bytes:
            return 0
        budget = self.settings.memory_bytes
        if self.wanted:
            return max(budget or 0, _SLICE_BYTES)
        load = next((each for each in self.loads if each.worker == worker), None)
        if self.settings.cleanup != "idle" or load is None or budget is None:
            return 0
        return max(0, budget // 2 - load.memory_bytes)

    def after(
        self,
        commit: Commit,
        reports: Sequence[Report],
        now_ms: int,
        under_way: Sequence[Relocate],
    ) -> Iterator[Event]:
        """Take a batch into account, and decide about the next; what came of the last order.

        It ended `now_ms` after the run began. The time before a batch counts as well: workers
        that wait for rows are idle.
        """
        passed_ms, self.now_ms = now_ms - self.now_ms, now_ms
        yield from self._outcome(commit.batch, reports)
        accounts = [each for report in reports for each in report.overflowed.values()]
        self.owing_bytes = sum(each.owing_bytes for each in accounts)
        self.wanted = self.wanted and self.owing_bytes > 0
        self.spills = {}
        recorded = {(m.space, m.groups, m.sender, m.receiver) for m in commit.moves}
        # One that was on record has ended; others may never have begun.
        if self._recorded - recorded:
            self.last_move_ms = now_ms
        self._recorded, self.moves = recorded, tuple(under_way)
        if not self.is_active:
            return
        self.loads = [self._load(commit, reports, w, passed_ms) for w in range(commit.workers)]
        snapshot = self.tally.snapshot(
            commit.batch,
            now_ms,
            self.loads,
            dict(enumerate(commit.assignments)),
            moves=[
                Move(each.space, each.groups, each.sender, each.receiver) for each in under_way
            ],
            last_relocation_ms=self.last_move_ms,
            defer=self.settings.defers or any(commit.generations),
            fixed=self.fixed,
        )
        self.strategy, proposals = self.strategy.decide(snapshot)
        verdict = vet(proposals, snapshot)
        self.spills = {
            each.worker: each for each in verdict.accepted if isinstance(each, Spill)
        }
        if not self.is_ending:
            wanted = (each for each in verdict.accepted if isinstance(each, Relocate))
            self.moves = (*self.moves, *wanted)
        for refusal in verdict.refused:
            yield Refused(commit.batch, str(refusal.proposal), refusal.reason)

    def count(self, commit: Commit, reports: Sequence[Report]) -> Commit:
        """A record that knows what its batch has done in every group, if a strategy cares."""
        if not self.is_active:
            return commit
        self.tally.begin()
        for report in reports:
            for space, loads in report.loads.items():
                self.tally.count(
                    space, commit.batch, loads.groups, loads.new_rows, loads.results
                )
                self.tally.measure(
                    space, loads.groups, loads.memory_bytes, loads.disk_bytes, loads.rows
                )
        return replace(commit, tallies=self.tally.records())

    def _load(
        self, commit: Commit, reports: Sequence[Report], worker: int, passed_ms: int
    ) -> WorkerLoad:
        mine = [report for report in reports if report.worker == worker]
        busy_ms = sum(report.busy_ms for report in mine)
        return WorkerLoad(
            worker=worker,
            memory_bytes=commit.bytes_in(MEMORY, worker),
            disk_bytes=commit.bytes_in(DISK, worker),
            budget_bytes=self.settings.memory_bytes,
            busy_ms=busy_ms,
            idle_ms=max(0, passed_ms - busy_ms),
            input_rows=sum(report.input_rows for report in mine),
            made_results=sum(
                sum(loads.results) for report in mine for loads in report.loads.values()
            ),
            waiting_rows=commit.waiting_rows(worker),
            spillable=commit.batch >= self.full_since.get(worker, -_PATIENCE) + _PATIENCE,
        )

    def _outcome(self, batch: int, reports: Sequence[Report]) -> Iterator[Event]:
        """What became of the orders of this batch."""
        for report in reports:
            for space, account in report.overflowed.items():
                order = self.spills.get(report.worker)
                was_full = report.worker in self.full_since
                if account.refusal:
                    self.full_since[report.worker] = batch
                elif account.spilled_groups:
                    self.full_since.pop(report.worker, None)
                if account.spilled_groups or (account.refusal and not was_full):
                    yield Spilled(
                        batch=batch,
                        worker=report.worker,
                        space=space,
                        groups=account.spilled_groups,
                        bytes=account.spilled_bytes,
                        reason=account.refusal or (order.reason if order else ""),
                        numbers=dict(order.numbers) if order else {},
                    )
                if account.cleaned_groups:
                    yield CleanedUp(
                        batch=batch,
                        worker=report.worker,
                        space=space,
                        groups=account.cleaned_groups,
                        results=account.cleaned_results,
                        owing_bytes=account.owing_bytes,
                    )

    def ask_for_cleanup(self) -> None:
        """Have all that is owed made in the next batches."""
        self.wanted = True
