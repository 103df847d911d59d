"""What is done about uneven load: count, freeze, ask the strategy, vet, give orders."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from braid.control.decider import Decided
from braid.control.guard import vet
from braid.control.proposal import Spill
from braid.control.sizes import parse_size
from braid.control.statistics import WorkerLoad
from braid.control.strategy import STRATEGIES, parameters_of, parse_strategy
from braid.control.strategy.none import NoAdaptation
from braid.control.tally import Tally
from braid.events import CleanedUp, Refused, Spilled
from braid.model.checks import require_known
from braid.model.errors import BraidError
from braid.record.move import Move
from braid.record.worker_orders import WorkerOrders
from braid.state.groups import ranges_with
from braid.state.store import DISK, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from braid.control.decider import BatchSeen
    from braid.control.pacing import Pacing
    from braid.control.strategy.contract import Strategy
    from braid.events import Event
    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from braid.record.move import MoveKey
    from braid.record.report import Report

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


@dataclass(frozen=True, slots=True)
class Adaptation:
    """The account of all groups, and what is to be done in the next batch.

    What is on disk may owe something when a run begins, as far as we know. The moves that were
    `accepted` after the last batch are yet to be computed.
    """

    plan: JoinPlan
    settings: MemorySettings
    strategy: Strategy
    tally: Tally
    owing_bytes: int
    spills: Mapping[int, Spill] = field(default_factory=dict)
    accepted: tuple[Move, ...] = ()
    full_since: Mapping[int, int] = field(default_factory=dict)
    """Batches at which workers' disks were found full."""
    moving: frozenset[MoveKey] = frozenset()
    last_move_ms: int | None = None
    loads: tuple[WorkerLoad, ...] = ()
    cleans_up: bool = False
    now_ms: int = 0

    @classmethod
    def of(cls, plan: JoinPlan, settings: MemorySettings, commit: Commit) -> Adaptation:
        """Begin with nothing to do, and what a record knows of groups."""
        owing_bytes = sum(each.length for own in commit.generations for each in own)
        tally = _tally_of(plan, commit)
        return cls(plan, settings, settings.strategy, tally, owing_bytes)

    def replanned(self, plan: JoinPlan, commit: Commit) -> Adaptation:
        """The account of another plan's groups, with what a record knows of them."""
        return replace(self, plan=plan, tally=_tally_of(plan, commit), spills={})

    @property
    def is_active(self) -> bool:
        """Whether there is a strategy that may ever ask for something."""
        return not isinstance(self.strategy, NoAdaptation)

    def cleaning_up(self) -> Adaptation:
        """Have all that is owed made in the next batches."""
        return replace(self, cleans_up=True)

    def orders(
        self, commit: Commit, pacing: Pacing, *, changes: bool
    ) -> tuple[WorkerOrders, ...]:
        """What each worker is to do in the batch after a commit.

        While the plan `changes`, or is about to, no row waits and nothing is deferred.
        """
        moving = commit.moving
        return tuple(
            replace(
                self._orders(worker, worker in moving, may_defer=not changes),
                share=None if changes else pacing.share(worker),
                may_wait=pacing.buffer_rows is not None,
                counts=self.is_active or pacing.buffer_rows is not None,
            )
            for worker in range(commit.workers)
        )

    def _orders(self, worker: int, is_moving: bool, *, may_defer: bool) -> WorkerOrders:
        spill = self.spills.get(worker)
        is_bounded = self.settings.memory_bytes is not None
        return WorkerOrders(
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
        if self.cleans_up:
            return max(budget or 0, _SLICE_BYTES)
        load = next((each for each in self.loads if each.worker == worker), None)
        if self.settings.cleanup != "idle" or load is None or budget is None:
            return 0
        return max(0, budget // 2 - load.memory_bytes)

    def counted(self, batch: int, reports: Sequence[Report]) -> Adaptation:
        """The account after a batch, if a strategy cares."""
        if not self.is_active:
            return self
        tally = self.tally.copy()
        tally.begin()
        for report in reports:
            for space, loads in report.loads.items():
                tally.count(space, batch, loads.groups, loads.new_rows, loads.results)
                tally.measure(
                    space, loads.groups, loads.memory_bytes, loads.disk_bytes, loads.rows
                )
        return replace(self, tally=tally)

    def tallies(self) -> tuple[dict[str, Any], ...]:
        """The account as a record keeps it."""
        return self.tally.records()

    def observe(self, seen: BatchSeen, under_way: Sequence[Move]) -> Decided[Adaptation]:
        """Decide about the next batch, and tell what came of the last orders.

        The time before a batch counts as well: workers that wait for rows are idle.
        """
        events: tuple[Event, ...] = (*self._spilled(seen), *self._cleaned_up(seen))
        accounts = [each for report in seen.reports for each in report.overflowed.values()]
        owing_bytes = sum(each.owing_bytes for each in accounts)
        moving = frozenset(move.key for move in seen.after.moves)
        after = replace(
            self,
            spills={},
            accepted=(),
            full_since=self._found_full(seen),
            owing_bytes=owing_bytes,
            cleans_up=self.cleans_up and owing_bytes > 0,
            # One that was on record has ended; others may never have begun.
            last_move_ms=seen.now_ms if self.moving - moving else self.last_move_ms,
            moving=moving,
            now_ms=seen.now_ms,
        )
        if not self.is_active:
            return Decided(after, events=events)
        decided = after._decided(seen, under_way, seen.now_ms - self.now_ms)
        return replace(decided, events=(*events, *decided.events))

    def _decided(
        self, seen: BatchSeen, under_way: Sequence[Move], passed_ms: int
    ) -> Decided[Adaptation]:
        """Ask the strategy, and vet what it says."""
        commit = seen.after
        loads = tuple(self._load(seen, worker, passed_ms) for worker in range(commit.workers))
        spaces = range(len(self.plan.rounds.spaces))
        snapshot = self.tally.snapshot(
            seen.batch,
            seen.now_ms,
            loads,
            dict(enumerate(commit.assignments)),
            moves=under_way,
            last_relocation_ms=self.last_move_ms,
            defer=self.settings.defers or any(commit.generations),
            fixed=frozenset(space for space in spaces if not self.plan.may_wait(space)),
        )
        strategy, proposals = self.strategy.decide(snapshot)
        verdict = vet(proposals, snapshot)
        spills = {each.worker: each for each in verdict.accepted if isinstance(each, Spill)}
        moves = tuple(each for each in verdict.accepted if isinstance(each, Move))
        after = replace(
            self,
            strategy=strategy,
            loads=loads,
            spills=spills,
            accepted=() if seen.is_ending else moves,
        )
        refused = (Refused(seen.batch, str(r.proposal), r.reason) for r in verdict.refused)
        return Decided(after, events=tuple(refused))

    def _load(self, seen: BatchSeen, worker: int, passed_ms: int) -> WorkerLoad:
        commit, mine = seen.after, seen.of_worker(worker)
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

    def _found_full(self, seen: BatchSeen) -> dict[int, int]:
        """Since when workers' disks are full."""
        full = dict(self.full_since)
        for report in seen.reports:
            for account in report.overflowed.values():
                if account.refusal:
                    full[report.worker] = seen.batch
                elif account.spilled_groups:
                    full.pop(report.worker, None)
        return full

    def _spilled(self, seen: BatchSeen) -> Iterator[Spilled]:
        """What workers have pushed out, or why they could not, which is told once."""
        told = set(self.full_since)
        for report in seen.reports:
            for space, account in report.overflowed.items():
                order = self.spills.get(report.worker)
                is_news = account.refusal and report.worker not in told
                if account.refusal:
                    told.add(report.worker)
                if account.spilled_groups or is_news:
                    yield Spilled(
                        batch=seen.batch,
                        worker=report.worker,
                        space=space,
                        groups=account.spilled_groups,
                        bytes=account.spilled_bytes,
                        reason=account.refusal or (order.reason if order else ""),
                        numbers=dict(order.numbers) if order else {},
                    )

    def _cleaned_up(self, seen: BatchSeen) -> Iterator[CleanedUp]:
        for report in seen.reports:
            for space, account in report.overflowed.items():
                if account.cleaned_groups:
                    yield CleanedUp(
                        batch=seen.batch,
                        worker=report.worker,
                        space=space,
                        groups=account.cleaned_groups,
                        results=account.cleaned_results,
                        owing_bytes=account.owing_bytes,
                    )


def _tally_of(plan: JoinPlan, commit: Commit) -> Tally:
    spaces = range(len(plan.rounds.spaces))
    return Tally(dict.fromkeys(spaces, plan.groups), known=commit.tallies)
