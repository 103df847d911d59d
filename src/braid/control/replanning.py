"""Looking for a better plan while a query runs: `braid.optimize` knows how, here is the rest.

Where all is joined under one key, each worker joins its groups by itself, and decides about its
plan by what it has measured itself. Elsewhere rows meet on all workers, and these decide as one
unit. So they do if plans are to change along a parallel track, which all have to take.

Time is that of events here, so that the same rows lead to the same plans however fast they are
read. The costs of operations are measured on this machine when a run starts.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from braid.control.behind import Behind
from braid.control.migration import AHEAD, PlanChangeRequest
from braid.control.observation import (
    Observation,
    keys_of,
    rate_facts,
    selectivity_facts,
    windows_of,
)
from braid.control.sampling import Sampling
from braid.events import Replanned
from braid.model.checks import require_known
from braid.model.choices import Choices
from braid.model.errors import BraidError
from braid.model.query import UNBOUNDED_US
from braid.optimize.plan import Budget
from braid.optimize.timing.accord import UnitView, agree_on_plans
from braid.optimize.timing.advisor import OPTIMIZERS, Advisor
from braid.optimize.timing.data_driven import DataDriven
from braid.optimize.timing.hysteresis import Hysteresis
from braid.optimize.timing.memory_driven import MemoryDriven
from braid.optimize.timing.quota import Quota
from braid.optimize.timing.refined import RefinedMemoryDriven
from braid.optimize.timing.statistics import Load, Measure, Situation
from braid.plan.names import state_names
from braid.plan.orders import laid_orders, show_orders
from braid.plan.tree import show_tree
from braid.record.plan_change import Way
from braid.state.store import DISK, MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from braid.control.decider import BatchSeen
    from braid.control.migration import Migration
    from braid.control.observation import Streams
    from braid.model.query import Query
    from braid.optimize.cost_model import IndexProbes
    from braid.optimize.timing.advisor import Advice
    from braid.optimize.timing.contract import Trigger
    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from braid.record.enact import RecordDraft

OFF = "off"
_KEPT = 0.8  # of the weight of earlier batches in how busy workers are
_FIRST_WINDOWS = 10  # until statistics change again, as long as nobody knows better
_TOGETHER = Way.PARALLEL_TRACK.value
TRIGGERS: Choices[Trigger] = Choices(
    "replan_when", {"data": DataDriven, "memory": MemoryDriven, "refined": RefinedMemoryDriven}
)


@dataclass(frozen=True, slots=True)
class PlanningUnit:
    """Workers that decide together: what they have measured, and who advises them.

    `cores` is how many they may keep busy. How many they do is seen; what a plan was foreseen
    to take is less, as there is more to a batch than joins. Plans are measured against what is
    left of the cores in that ratio.
    """

    workers: tuple[int, ...]
    observation: Observation
    advisor: Advisor
    cores: float = math.inf
    most_s: float = math.inf  # of event time in a batch
    busy_s: float = 0.0
    passed_s: float = 0.0
    ratio: float = 1.0

    def learned(self, seen: BatchSeen) -> PlanningUnit:
        """A batch by the plan, in which event time went on by so much; older ones fade.

        A jump of time, or a batch of late rows, does not tell how busy workers are by the plan.
        """
        passed_s = seen.advanced_us / 1_000_000
        if not 0 < passed_s <= self.most_s:
            return self
        busy_ms = sum(r.busy_ms for r in seen.reports if r.worker in self.workers)
        return replace(
            self,
            busy_s=_KEPT * self.busy_s + busy_ms / 1000,
            passed_s=_KEPT * self.passed_s + passed_s,
        )

    def forgetful(self) -> PlanningUnit:
        """Begin anew with another plan; the ratio holds until that one has been seen."""
        return replace(self, busy_s=0.0, passed_s=0.0)

    def measured(self, foreseen: float) -> PlanningUnit:
        """With the ratio of the cores that are busy to those that were foreseen to be."""
        seen = self.busy_s / self.passed_s if self.passed_s > 0 else 0.0
        return replace(self, ratio=seen / foreseen) if seen > 0 and foreseen > 0 else self

    @property
    def budget(self) -> Budget:
        """What a plan may take."""
        return replace(self.advisor.budget, cpu=self.cores / self.ratio)


@dataclass(frozen=True, slots=True)
class UnitBallot:
    """A unit that is asked, by its place, and the plan that it has, as the run calls it."""

    place: int
    plan: str
    voice: UnitView


@dataclass(frozen=True, slots=True)
class ReplanDecided:
    """What comes of asking all units: whom to ask next time, requests, and what is told.

    So many `searches` for plans were made.
    """

    next: Replanning
    requests: tuple[PlanChangeRequest, ...] = ()
    events: tuple[Replanned, ...] = ()
    pairs: tuple[Streams, ...] = ()
    searches: int = 0


@dataclass(frozen=True, slots=True)
class Replanning:
    """Asks all units' advisors after every batch; `costs` are what they reckon with.

    Where all workers decide together, the unit's observation is the run's. A search has taken
    `searched_s` of late.
    """

    units: tuple[PlanningUnit, ...]
    costs: IndexProbes
    sampling: Sampling
    behind: Behind = field(default_factory=Behind)
    plan: tuple[Any, ...] = ()
    newest_us: int | None = None  # as far as this run has come
    searched_s: float = 0.0

    def learned(self, seen: BatchSeen, observation: Observation) -> Replanning:
        """What the units know after a batch; `observation` is that of all workers after it."""
        is_of_one_plan = seen.before.latest_us is not None and seen.before.change is None
        plan = seen.plan.texts, seen.plan.routes
        units = []
        for unit in self.units:
            is_all = len(unit.workers) == seen.after.workers
            known = observation if is_all else unit.observation.observe(seen)
            after = unit if plan == self.plan else unit.forgetful()
            after = replace(after, observation=known)
            units.append(after.learned(seen) if is_of_one_plan else after)
        # Nobody knows how much event time the first batch has brought.
        elapsed_ms, went_ms = 0.0, 0.0
        if not self.is_first:
            elapsed_ms, went_ms = float(seen.elapsed_ms), seen.advanced_us / 1000
        rows, told = seen.input_rows, seen.unread_rows
        behind = self.behind.observe(rows, elapsed_ms, went_ms, told)
        return replace(self, units=tuple(units), behind=behind, plan=plan)

    @property
    def is_first(self) -> bool:
        """Whether no batch of this run has told how far event time has come."""
        return self.newest_us is None

    def timed(self, taken_s: float, searches: int) -> Replanning:
        """Note how long searches took; what took too long once may have been the machine.

        So it fades until it is tried again.
        """
        if not searches:
            return self
        return replace(self, searched_s=max(taken_s / searches, self.searched_s / 2))

    def observe(
        self,
        seen: BatchSeen,
        draft: RecordDraft,
        migration: Migration,
        observation: Observation,
    ) -> ReplanDecided:
        """Have plans changed, if it is time and there are better ones; and tell why.

        A change that is under way comes first: what is measured meanwhile is of two plans.
        """
        after = replace(self, newest_us=seen.after.latest_us)
        if migration.is_wanted(seen.after) or self.is_first or after.is_first:
            return ReplanDecided(after)
        sampling, pairs = self.sampling.observe(seen, observation)
        after = replace(after, sampling=sampling)
        if (seen.is_sampling or pairs) and observation.unknown:
            return ReplanDecided(after, pairs=pairs)  # something is to be known soon
        return replace(after._decided(seen, draft, migration), pairs=pairs)

    def _decided(
        self, seen: BatchSeen, draft: RecordDraft, migration: Migration
    ) -> ReplanDecided:
        plan, commit = draft.plan, seen.after
        owners = set(commit.placement(plan.rounds.join_spaces[0]).owners)
        costs = replace(self.costs, lag=max(0, seen.advanced_us) / 1_000_000)
        units = list(self.units)
        ballots = list(self._ballots(draft, migration, owners, costs, units))
        texts = {ballot.voice.plan: ballot.plan for ballot in ballots}
        strangers = len(plan.texts) - len(texts)  # trees that nobody speaks for
        voices = [each.voice for each in ballots]
        answers = agree_on_plans(voices, plan.most_trees - strangers)
        requests, events = [], []
        for number, (advisor, advice) in answers.items():
            ballot, new = ballots[number], None
            unit = units[ballot.place] = replace(units[ballot.place], advisor=advisor)
            if advice.plan is not None:
                new = texts.get((advice.plan.tree, advice.plan.orders), advice.plan.text)
                reason, batch = advice.decision.reason, commit.batch + AHEAD
                where = new, migration.way, reason, batch, unit.workers
                requests.append(PlanChangeRequest(*where))
            if advice.current is not None:
                whose = unit.workers if len(self.units) > 1 else ()
                events.append(_event(commit.batch, ballot, advice, new, whose))
        is_search = any(advice.current is not None for _, advice in answers.values())
        return ReplanDecided(
            replace(self, units=tuple(units)),
            tuple(merge_requests(requests, owners)),
            tuple(events),
            searches=len(answers) if is_search else 0,
        )

    def _ballots(
        self,
        draft: RecordDraft,
        migration: Migration,
        owners: set[int],
        costs: IndexProbes,
        units: list[PlanningUnit],
    ) -> Iterator[UnitBallot]:
        """The units that have something to change, and know enough to decide.

        What they have measured of the plan that runs is put into `units`.
        """
        plan, commit = draft.plan, draft.commit
        row_bytes, now_ms = dict(_row_bytes(plan, commit)), (commit.latest_us or 0) / 1000
        running = list(_running(plan))
        if len(row_bytes) < len(plan.streams):
            return
        for place, unit in enumerate(units):
            known = unit.observation.statistics
            is_known = all(rate.value is not None for rate in known.rates.values())
            if not is_known or owners.isdisjoint(unit.workers):
                continue
            tree = _main_tree(plan, commit, unit.workers)
            foreseen_s = partial(migration.foreseen_s, draft, unit.workers, self.costs)
            advisor = replace(
                unit.advisor, row_bytes=row_bytes, model=costs, change_s=foreseen_s
            )
            foreseen = advisor.price(known, *running[tree]).cpu
            units[place] = unit.measured(foreseen)
            advisor = replace(advisor, budget=units[place].budget)
            load = _load(plan, commit, unit, self.behind.unread_rows)
            situation = Situation(now_ms, known, load, self.searched_s)
            yield UnitBallot(
                place, plan.texts[tree], UnitView(advisor, situation, *running[tree])
            )


def merge_requests(
    requests: Sequence[PlanChangeRequest], owners: Collection[int]
) -> list[PlanChangeRequest]:
    """One request for each plan, of all who want it; of all workers if no others own groups."""
    found: dict[str, PlanChangeRequest] = {}
    for each in requests:
        first = found.get(each.plan)
        workers = each.workers if first is None else (*first.workers, *each.workers)
        found[each.plan] = replace(first or each, workers=tuple(sorted(workers)))
    return [
        replace(each, workers=()) if set(owners) <= set(each.workers) else each
        for each in found.values()
    ]


def names_trigger(text: object) -> bool:
    """Whether a text begins with the name of a trigger, as `replan_when` does."""
    return isinstance(text, str) and text.partition(" ")[0] in TRIGGERS.makers


def replanning_of(
    plan: JoinPlan,
    migration: Migration,
    costs: Callable[[], IndexProbes],
    observation: Observation,
    optimizer: str,
    trigger: str,
    memory_bytes: int | None,
    cores: float,
) -> Replanning | None:
    """What a user asked for, checked; `memory_bytes` are those of a worker.

    The `observation` is of all workers, and so are the `cores` that they may keep busy.
    """
    if not cores > 0:
        raise BraidError(
            f"the CPU budget is {cores!r}",
            hint="give a number of cores, such as 1.5; inf is for as little CPU as can be",
        )
    require_known("optimizer", optimizer, (OFF, *OPTIMIZERS))
    span_ms = _longest_us(plan.query) / 1000
    # In the time of a window, all of the state is renewed.
    chosen = TRIGGERS.parse(trigger, {"interval_ms": span_ms, "period_ms": span_ms})
    if optimizer == OFF:
        return None
    if plan.is_ordered or span_ms * 1000 >= UNBOUNDED_US:
        what = "a history" if plan.is_ordered else "a window without end"
        raise BraidError(
            f"the plan of a query with {what} cannot change while it runs",
            hint="leave the optimizer off, or give every stream a window [RANGE …]",
        )
    memory = math.inf if memory_bytes is None else memory_bytes
    measured = costs()
    quota = Quota(first_ms=_FIRST_WINDOWS * span_ms)
    most_s = quota.first_ms / 1000
    advisor = Advisor(
        trigger=chosen,
        window=windows_of(plan.query),
        optimizer=optimizer,
        budget=Budget(memory=memory),
        model=measured,
        keys=keys_of(plan.query),
        hysteresis=Hysteresis(rest_ms=span_ms),
        quota=quota,
    )
    everyone = tuple(range(migration.workers))
    if len(everyone) > 1 and _is_joined_apart(plan.query) and migration.way != _TOGETHER:
        units = [
            PlanningUnit(
                (worker,),
                Observation(plan.query, frozenset({worker})),
                replace(advisor, quota=replace(quota, cores=min(1.0, cores / len(everyone)))),
                cores / len(everyone),
                most_s,
            )
            for worker in everyone
        ]
    else:
        budget = Budget(memory=memory * len(everyone))
        quota = replace(quota, cores=min(len(everyone), cores))
        together = replace(advisor, budget=budget, quota=quota)
        units = [PlanningUnit(everyone, observation, together, cores, most_s)]
    sampling = Sampling(every_us=_longest_us(plan.query))
    return Replanning(tuple(units), measured, sampling)


def _is_joined_apart(query: Query) -> bool:
    """Whether rows meet in the same places under any plan, each worker's among themselves."""
    streams = frozenset(range(len(query.streams)))
    return bool(query.keys) and all(key.streams == streams for key in query.keys)


def _longest_us(query: Query) -> int:
    return max(stream.window_us for stream in query.streams)


def _row_bytes(plan: JoinPlan, commit: Commit) -> Iterator[tuple[str, float]]:
    """What a row takes in the states of each stream that has any."""
    for number, state in enumerate(plan.rounds.states):
        if not state.relation.is_joined and number != plan.rounds.grouped:
            runs = commit.runs_of(number)
            rows = sum(run.rows for run in runs)
            if rows:
                (stream,) = state.relation.streams
                yield plan.query.streams[stream].alias, sum(run.length for run in runs) / rows


def _load(plan: JoinPlan, commit: Commit, unit: PlanningUnit, unread_rows: Measure) -> Load:
    """What a unit has in its states, and what waits for it.

    What is on disk counts as well: there was no room for it in memory.
    """
    names = state_names(plan.query, plan.rounds)
    inner = Counter[str]()
    for number, state in enumerate(plan.rounds.states):
        if state.relation.is_joined:
            ladders = (commit.ladders[worker][number] for worker in unit.workers)
            inner[names[number]] += sum(run.rows for ladder in ladders for run in ladder)
    tiers = product(unit.workers, (MEMORY, DISK))
    return Load(
        memory=Measure.exact(sum(commit.bytes_in(tier, worker) for worker, tier in tiers)),
        memory_budget=unit.advisor.budget.memory,
        unread_rows=unread_rows,
        waiting_rows=Measure.exact(sum(map(commit.waiting_rows, unit.workers))),
        intermediate_rows={name: Measure.exact(rows) for name, rows in inner.items()},
    )


def _running(plan: JoinPlan) -> Iterator[tuple[str, str]]:
    """Each tree, with the orders in which it really probes."""
    aliases = [stream.alias for stream in plan.query.streams]
    for number, tree in enumerate(plan.rounds.trees):
        orders = show_orders(laid_orders(plan.rounds, number), aliases)
        yield show_tree(tree, aliases), orders


def _main_tree(plan: JoinPlan, commit: Commit, workers: Sequence[int]) -> int:
    """The tree that most of some workers' groups go through; those that moved may have others.

    A change is one of all their groups.
    """
    if not commit.plan_of_group:
        return 0
    own = commit.placement(plan.rounds.join_spaces[0]).of(*workers)
    return int(np.bincount(np.array(commit.plan_of_group)[own], minlength=1).argmax())


def _event(
    batch: int, ballot: UnitBallot, advice: Advice, new: str | None, workers: tuple[int, ...]
) -> Replanned:
    known = ballot.voice.situation.data
    return Replanned(
        batch=batch,
        old=ballot.plan,
        new=new,
        reason=advice.decision.reason,
        numbers=dict(advice.decision.numbers),
        rates=rate_facts(known),
        selectivities=selectivity_facts(known),
        workers=workers,
    )
