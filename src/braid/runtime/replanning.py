"""Looking for a better plan while a query runs: `braid.optimize` knows how, here is the rest.

Where all is joined under one key, each worker joins its groups by itself, and decides about its
plan by what it has measured itself. Elsewhere rows meet on all workers, and these decide as one
party. So they do if plans are to change along a parallel track, which all have to take.

Time is that of events here, so that the same rows lead to the same plans however fast they are
read. The costs of operations are measured on this machine when a run starts.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from braid.events import Replanned
from braid.migrate import Way
from braid.model.checks import require_known
from braid.model.choices import Choices
from braid.model.errors import BraidError
from braid.model.query import UNBOUNDED_US
from braid.optimize.plan import Budget
from braid.optimize.timing.accord import Voice, in_accord
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
from braid.runtime.account import rate_facts, selectivity_facts
from braid.runtime.behind import Behind
from braid.runtime.calibrate import measure_costs
from braid.runtime.migration import AHEAD, Wish
from braid.runtime.observation import Observation, keys_of, windows_of
from braid.runtime.sampling import Sampling
from braid.state.store import DISK, MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from braid.join.plan import JoinPlan
    from braid.join.report import Report
    from braid.model.query import Query
    from braid.optimize.cost_model import IndexProbes
    from braid.optimize.timing.advisor import Advice
    from braid.optimize.timing.contract import Trigger
    from braid.runtime.migration import Migration
    from braid.runtime.union import Gathered, StreamUnion
    from braid.state.commit import Commit

OFF = "off"
_KEPT = 0.8  # of the weight of earlier batches in how busy workers are
_FIRST_WINDOWS = 10  # until statistics change again, as long as nobody knows better
_TOGETHER = Way.PARALLEL_TRACK.value
TRIGGERS: Choices[Trigger] = Choices(
    "replan_when", {"data": DataDriven, "memory": MemoryDriven, "refined": RefinedMemoryDriven}
)


@dataclass(slots=True)
class Party:
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
    _busy_s: float = field(default=0.0, init=False)
    _passed_s: float = field(default=0.0, init=False)
    _ratio: float = field(default=1.0, init=False)

    def learn(self, reports: Sequence[Report], passed_s: float) -> None:
        """A batch by the plan, in which event time went on by so much; older ones fade.

        A jump of time, or a batch of late rows, does not tell how busy workers are by the plan.
        """
        if not 0 < passed_s <= self.most_s:
            return
        busy_ms = sum(report.busy_ms for report in reports if report.worker in self.workers)
        self._busy_s = _KEPT * self._busy_s + busy_ms / 1000
        self._passed_s = _KEPT * self._passed_s + passed_s

    def forget(self) -> None:
        """Begin anew with another plan; the ratio holds until that one has been seen."""
        self._busy_s = self._passed_s = 0.0

    def budget(self, foreseen: float) -> Budget:
        """What a plan may take, if the one that runs was foreseen to take so many cores."""
        seen = self._busy_s / self._passed_s if self._passed_s > 0 else 0.0
        if seen > 0 and foreseen > 0:
            self._ratio = seen / foreseen
        return replace(self.advisor.budget, cpu=self.cores / self._ratio)


@dataclass(frozen=True, slots=True)
class _Speaker:
    """A party that is asked, and the plan that it has, as the run calls it."""

    party: Party
    plan: str
    voice: Voice


@dataclass(slots=True)
class Replanning:
    """Asks all parties' advisors after every batch; `costs` are what they reckon with."""

    parties: Sequence[Party]
    observation: Observation
    costs: IndexProbes
    sampling: Sampling
    behind: Behind = field(default_factory=Behind)
    _newest_us: int | None = field(default=None, init=False)
    _plan: tuple[Any, ...] = field(default=(), init=False)
    _searched_s: float = field(default=0.0, init=False)

    def learn(
        self, plan: JoinPlan, before: Commit, now: Commit, reports: Sequence[Report]
    ) -> None:
        """Let the parties learn from a batch; what all have measured has done so already."""
        passed_s = ((now.latest_us or 0) - (before.latest_us or 0)) / 1_000_000
        is_of_one_plan = before.latest_us is not None and before.change is None
        if (plan.texts, plan.routes) != self._plan:
            self._plan = plan.texts, plan.routes
            for party in self.parties:
                party.forget()
        for party in self.parties:
            if party.observation is not self.observation:
                party.observation.after(plan, before, now, reports)
            if is_of_one_plan:
                party.learn(reports, passed_s)

    def after(
        self,
        migration: Migration,
        commit: Commit,
        read: Callable[[], Gathered],
        rows: int,
        elapsed_ms: float,
    ) -> Iterator[Replanned]:
        """Have plans changed, if it is time and there are better ones; and tell why.

        The batch had `rows`, which can be `read` again, and took `elapsed_ms`. A change that is
        under way comes first: what is measured meanwhile is of two plans.
        """
        before_us, self._newest_us = self._newest_us, commit.latest_us
        went_us = 0 if before_us is None else (commit.latest_us or 0) - before_us
        # Nobody knows how much event time the first batch has brought.
        self.behind.after(rows, 0 if before_us is None else elapsed_ms, went_us / 1000)
        if migration.is_wanted(commit) or before_us is None or commit.latest_us is None:
            return
        plan = migration.plan
        self.sampling.after(read, rows, commit.latest_us, self.observation)
        if self.sampling.is_awaited(self.observation):
            return
        lag = max(0, went_us) / 1_000_000
        owners = set(commit.assignments[plan.rounds.homes[0]])
        costs = replace(self.costs, lag=lag)
        speakers = list(self._speakers(migration, commit, owners, costs))
        texts = {speaker.voice.plan: speaker.plan for speaker in speakers}
        wishes = []
        began = perf_counter()
        strangers = len(plan.texts) - len(texts)  # trees that nobody speaks for
        answers = in_accord([each.voice for each in speakers], plan.most_trees - strangers)
        if any(advice.current is not None for _, advice in answers.values()):
            # What took too long once may have been the machine: it fades until it is tried.
            taken_s = (perf_counter() - began) / len(answers)
            self._searched_s = max(taken_s, self._searched_s / 2)
        for number, (advisor, advice) in answers.items():
            speaker, new = speakers[number], None
            workers = speaker.party.workers
            speaker.party.advisor = advisor
            if advice.plan is not None:
                new = texts.get((advice.plan.tree, advice.plan.orders), advice.plan.text)
                reason = advice.decision.reason
                wishes.append(Wish(new, migration.way, reason, commit.batch + AHEAD, workers))
            if advice.current is not None:
                whose = workers if len(self.parties) > 1 else ()
                yield _event(commit.batch, speaker, advice, new, whose)
        for wish in gathered(wishes, owners):
            migration.ask(wish)

    def _speakers(
        self, migration: Migration, commit: Commit, owners: set[int], costs: IndexProbes
    ) -> Iterator[_Speaker]:
        """The parties that have something to change, and know enough to decide."""
        plan = migration.plan
        row_bytes, now_ms = dict(_row_bytes(plan, commit)), (commit.latest_us or 0) / 1000
        running = list(_running(plan))
        for party in self.parties if len(row_bytes) == len(plan.streams) else ():
            known = party.observation.statistics
            is_known = all(rate.value is not None for rate in known.rates.values())
            if is_known and not owners.isdisjoint(party.workers):
                tree = _main_tree(plan, commit, party.workers)
                foreseen_s = partial(migration.foreseen_s, commit, party.workers, self.costs)
                advisor = replace(
                    party.advisor, row_bytes=row_bytes, model=costs, change_s=foreseen_s
                )
                foreseen = advisor.price(known, *running[tree]).cpu
                advisor = replace(advisor, budget=party.budget(foreseen))
                load = _load(plan, commit, party, self.behind.unread_rows)
                situation = Situation(now_ms, known, load, self._searched_s)
                voice = Voice(advisor, situation, *running[tree])
                yield _Speaker(party, plan.texts[tree], voice)


def gathered(wishes: Sequence[Wish], owners: Collection[int]) -> list[Wish]:
    """One wish for each plan, of all who want it; for all workers, if no others own groups."""
    found: dict[str, Wish] = {}
    for wish in wishes:
        first = found.get(wish.plan)
        workers = wish.workers if first is None else (*first.workers, *wish.workers)
        found[wish.plan] = replace(first or wish, workers=tuple(sorted(workers)))
    return [
        replace(wish, workers=()) if set(owners) <= set(wish.workers) else wish
        for wish in found.values()
    ]


def names_trigger(text: object) -> bool:
    """Whether a text begins with the name of a trigger, as `replan_when` does."""
    return isinstance(text, str) and text.partition(" ")[0] in TRIGGERS.makers


def replanning_of(
    migration: Migration,
    union: StreamUnion,
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
    plan = migration.plan
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
    costs = measure_costs(several_keys=len(plan.query.keys) > 1)
    quota = Quota(first_ms=_FIRST_WINDOWS * span_ms)
    most_s = quota.first_ms / 1000
    advisor = Advisor(
        trigger=chosen,
        window=windows_of(plan.query),
        optimizer=optimizer,
        budget=Budget(memory=memory),
        model=costs,
        keys=keys_of(plan.query),
        hysteresis=Hysteresis(rest_ms=span_ms),
        quota=quota,
    )
    everyone = tuple(range(migration.workers))
    if len(everyone) > 1 and _is_joined_apart(plan.query) and migration.way != _TOGETHER:
        parties = [
            Party(
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
        parties = [Party(everyone, observation, together, cores, most_s)]
    sampling = Sampling(plan.query, union, every_us=_longest_us(plan.query))
    return Replanning(parties, observation, costs, sampling)


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


def _load(plan: JoinPlan, commit: Commit, party: Party, unread_rows: Measure) -> Load:
    """What a party has in its states, and what waits for it.

    What is on disk counts as well: there was no room for it in memory.
    """
    names = state_names(plan.query, plan.rounds)
    inner = Counter[str]()
    for number, state in enumerate(plan.rounds.states):
        if state.relation.is_joined:
            ladders = (commit.ladders[worker][number] for worker in party.workers)
            inner[names[number]] += sum(run.rows for ladder in ladders for run in ladder)
    tiers = product(party.workers, (MEMORY, DISK))
    return Load(
        memory=Measure.exact(sum(commit.bytes_in(tier, worker) for worker, tier in tiers)),
        memory_budget=party.advisor.budget.memory,
        unread_rows=unread_rows,
        waiting_rows=Measure.exact(sum(map(commit.waiting_rows, party.workers))),
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
    own = np.isin(commit.assignments[plan.rounds.homes[0]], workers)
    return int(np.bincount(np.array(commit.plan_of_group)[own], minlength=1).argmax())


def _event(
    batch: int, speaker: _Speaker, advice: Advice, new: str | None, workers: tuple[int, ...]
) -> Replanned:
    known = speaker.voice.situation.data
    return Replanned(
        batch=batch,
        old=speaker.plan,
        new=new,
        reason=advice.decision.reason,
        numbers=dict(advice.decision.numbers),
        rates=rate_facts(known),
        selectivities=selectivity_facts(known),
        workers=workers,
    )
