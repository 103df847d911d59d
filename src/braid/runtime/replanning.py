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
from itertools import product
from typing import TYPE_CHECKING

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
from braid.optimize.timing.refined import RefinedMemoryDriven
from braid.optimize.timing.statistics import Load, Measure, Situation
from braid.plan.names import state_names
from braid.plan.orders import laid_orders, show_orders
from braid.plan.tree import show_tree
from braid.runtime.account import rate_facts, selectivity_facts
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
_TOGETHER = Way.PARALLEL_TRACK.value
_TRIGGERS: Choices[Trigger] = Choices(
    "trigger", {"data": DataDriven, "memory": MemoryDriven, "refined": RefinedMemoryDriven}
)


@dataclass(slots=True)
class Party:
    """Workers that decide together: what they have measured, and who advises them."""

    workers: tuple[int, ...]
    observation: Observation
    advisor: Advisor


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
    _newest_us: int | None = field(default=None, init=False)

    def learn(
        self, plan: JoinPlan, before: Commit, now: Commit, reports: Sequence[Report]
    ) -> None:
        """Let the parties learn from a batch; what all have measured has done so already."""
        for party in self.parties:
            if party.observation is not self.observation:
                party.observation.after(plan, before, now, reports)

    def after(
        self, migration: Migration, commit: Commit, read: Callable[[], Gathered], rows: int
    ) -> Iterator[Replanned]:
        """Have plans changed, if it is time and there are better ones; and tell why.

        The batch had `rows`, which can be `read` again. A change that is under way comes first:
        what is measured meanwhile is of two plans.
        """
        before_us, self._newest_us = self._newest_us, commit.latest_us
        if migration.is_wanted(commit) or before_us is None or commit.latest_us is None:
            return
        plan = migration.plan
        self.sampling.after(read, rows, commit.latest_us, self.observation)
        if self.sampling.is_awaited(self.observation):
            return
        lag = max(0, commit.latest_us - before_us) / 1_000_000
        owners = set(commit.assignments[plan.rounds.homes[0]])
        costs = replace(self.costs, lag=lag)
        speakers = list(self._speakers(plan, commit, owners, costs))
        texts = {speaker.voice.plan: speaker.plan for speaker in speakers}
        wishes = []
        strangers = len(plan.texts) - len(texts)  # trees that nobody speaks for
        answers = in_accord([each.voice for each in speakers], plan.most_trees - strangers)
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
        self, plan: JoinPlan, commit: Commit, owners: set[int], costs: IndexProbes
    ) -> Iterator[_Speaker]:
        """The parties that have something to change, and know enough to decide."""
        row_bytes, now_ms = dict(_row_bytes(plan, commit)), (commit.latest_us or 0) / 1000
        running = list(_running(plan))
        for party in self.parties if len(row_bytes) == len(plan.streams) else ():
            known = party.observation.statistics
            is_known = all(rate.value is not None for rate in known.rates.values())
            if is_known and not owners.isdisjoint(party.workers):
                tree = _main_tree(plan, commit, party.workers)
                advisor = replace(party.advisor, row_bytes=row_bytes, model=costs)
                situation = Situation(now_ms, known, _load(plan, commit, party))
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


def replanning_of(
    migration: Migration,
    union: StreamUnion,
    observation: Observation,
    optimizer: str,
    trigger: str,
    memory_bytes: int | None,
) -> Replanning | None:
    """What a user asked for, checked; `memory_bytes` are those of a worker.

    The `observation` is of all workers.
    """
    plan = migration.plan
    require_known("optimizer", optimizer, (OFF, *OPTIMIZERS))
    span_ms = _longest_us(plan.query) / 1000
    # In the time of a window, all of the state is renewed.
    chosen = _TRIGGERS.parse(trigger, {"interval_ms": span_ms, "period_ms": span_ms})
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
    advisor = Advisor(
        trigger=chosen,
        window=windows_of(plan.query),
        optimizer=optimizer,
        budget=Budget(memory=memory),
        model=costs,
        keys=keys_of(plan.query),
        hysteresis=Hysteresis(rest_ms=span_ms),
    )
    everyone = tuple(range(migration.workers))
    if len(everyone) > 1 and _is_joined_apart(plan.query) and migration.way != _TOGETHER:
        parties = [
            Party((worker,), Observation(plan.query, frozenset({worker})), advisor)
            for worker in everyone
        ]
    else:
        budget = Budget(memory=memory * len(everyone))
        parties = [Party(everyone, observation, replace(advisor, budget=budget))]
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


def _load(plan: JoinPlan, commit: Commit, party: Party) -> Load:
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
