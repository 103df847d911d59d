"""Looking for a better plan while a query runs: `braid.optimize` knows how, here is the rest.

Time is that of events here, so that the same rows lead to the same plans however fast they are
read. The costs of operations are measured on this machine when a run starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from braid.events import Replanned
from braid.model.checks import require_known
from braid.model.choices import Choices
from braid.model.errors import BraidError
from braid.model.query import UNBOUNDED_US
from braid.optimize.plan import Budget
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
from braid.runtime.migration import Wish
from braid.runtime.observation import keys_of, windows_of
from braid.runtime.sampling import Sampling
from braid.state.store import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from braid.join.plan import JoinPlan
    from braid.model.query import Query
    from braid.optimize.cost_model import IndexProbes
    from braid.optimize.timing.advisor import Advice
    from braid.optimize.timing.contract import Trigger
    from braid.optimize.timing.statistics import DataStatistics
    from braid.runtime.migration import Migration
    from braid.runtime.observation import Observation
    from braid.runtime.union import StreamUnion
    from braid.state.commit import Commit

OFF = "off"
_TRIGGERS: Choices[Trigger] = Choices(
    "trigger", {"data": DataDriven, "memory": MemoryDriven, "refined": RefinedMemoryDriven}
)


@dataclass(slots=True)
class Replanning:
    """Asks an advisor after every batch; `costs` are what it reckons with."""

    advisor: Advisor
    costs: IndexProbes
    sampling: Sampling
    _newest_us: int | None = field(default=None, init=False)

    def after(
        self,
        migration: Migration,
        commit: Commit,
        observation: Observation,
        read: Callable[[], DataFrame],
        rows: int,
    ) -> Iterator[Replanned]:
        """Have the plan changed, if it is time and there is a better one; and tell why.

        The batch had `rows`, which can be `read` again. A change that is under way comes first:
        what is measured meanwhile is of two plans.
        """
        before_us, self._newest_us = self._newest_us, commit.latest_us
        if migration.is_wanted(commit) or before_us is None or commit.latest_us is None:
            return
        plan = migration.plan
        if len(plan.texts) > 1:
            return  # someone chose plans for some workers
        self.sampling.after(read, rows, commit.latest_us, observation)
        known = observation.statistics
        row_bytes = dict(_row_bytes(plan, commit))
        is_known = all(rate.value is not None for rate in known.rates.values())
        if not is_known or row_bytes.keys() != known.rates.keys():
            return
        lag = max(0, commit.latest_us - before_us) / 1_000_000
        asked = replace(self.advisor, row_bytes=row_bytes, model=replace(self.costs, lag=lag))
        situation = Situation(commit.latest_us / 1000, known, self._load(plan, commit))
        aliases = [stream.alias for stream in plan.query.streams]
        (tree,) = plan.rounds.trees
        orders = show_orders(laid_orders(plan.rounds), aliases)
        self.advisor, advice = asked.advise(situation, show_tree(tree, aliases), orders)
        if advice.current is not None:
            yield _event(commit, plan, known, advice)
        if advice.plan is not None:
            migration.ask(Wish(advice.plan.text, migration.way, advice.decision.reason))

    def _load(self, plan: JoinPlan, commit: Commit) -> Load:
        workers = range(commit.workers)
        names = state_names(plan.query, plan.rounds)
        inner = {
            names[number]: sum(run.rows for run in commit.runs_of(number))
            for number, state in enumerate(plan.rounds.states)
            if state.relation.is_joined
        }
        return Load(
            memory=Measure.exact(sum(commit.bytes_in(MEMORY, worker) for worker in workers)),
            memory_budget=self.advisor.budget.memory,
            waiting_rows=Measure.exact(sum(map(commit.waiting_rows, workers))),
            intermediate_rows={name: Measure.exact(rows) for name, rows in inner.items()},
        )


def replanning_of(
    plan: JoinPlan, union: StreamUnion, optimizer: str, trigger: str, memory_bytes: int | None
) -> Replanning | None:
    """What a user asked for, checked; `memory_bytes` are all workers'."""
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
    return Replanning(
        Advisor(
            trigger=chosen,
            window=windows_of(plan.query),
            optimizer=optimizer,
            budget=Budget(memory=memory),
            model=costs,
            keys=keys_of(plan.query),
            hysteresis=Hysteresis(rest_ms=span_ms),
        ),
        costs,
        Sampling(plan.query, union, every_us=_longest_us(plan.query)),
    )


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


def _event(commit: Commit, plan: JoinPlan, known: DataStatistics, advice: Advice) -> Replanned:
    return Replanned(
        batch=commit.batch,
        old=plan.texts[-1],
        new=None if advice.plan is None else advice.plan.text,
        reason=advice.decision.reason,
        numbers=dict(advice.decision.numbers),
        rates=rate_facts(known),
        selectivities=selectivity_facts(known),
    )
