"""All decisions in a row: is it time, is there a better plan, is it worth the change?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from braid.model.errors import BraidError
from braid.optimize.bjtree_init import bjtree_init
from braid.optimize.cost_model import CostModel, NestedLoops
from braid.optimize.cost_of import cost_of
from braid.optimize.exhaustive import exhaustive
from braid.optimize.mjoin_init import mjoin_init
from braid.optimize.plan import Budget, Plan
from braid.optimize.timing.contract import Decision, Trigger
from braid.optimize.timing.hysteresis import Hysteresis
from braid.optimize.timing.query_log import QueryLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from braid.model.join_graph import JoinGraph
    from braid.optimize.timing.quota import Quota
    from braid.optimize.timing.statistics import DataStatistics, Situation

OPTIMIZERS: Mapping[str, Callable[..., Plan | None]] = {
    "mjoin-init": mjoin_init,
    "bjtree-init": bjtree_init,
    "exhaustive": exhaustive,
}
"""By the names that `--optimizer` takes."""


@dataclass(frozen=True)
class Advice:
    """What to do now: change to `plan`, or nothing if there is none.

    `decision` is what settled it: the trigger's if it was not time, else that of hysteresis. If
    it was time, `cue` is why, and `current` is the plan that runs, with its costs.
    """

    plan: Plan | None
    decision: Decision
    current: Plan | None = None
    cue: Decision | None = None


def _nobody_knows(graph: JoinGraph, plan: str) -> None:
    return None


def _told(cue: Decision, verdict: Decision) -> Decision:
    """A verdict with its cue."""
    reason = f"{cue.reason}: {verdict.reason}"
    return Decision(verdict.yes, reason, {**cue.numbers, **verdict.numbers})


@dataclass(frozen=True, kw_only=True)
class Advisor:
    """Asks a trigger, an optimizer or the log, and hysteresis; frozen, as all of them are.

    `window`, `keys` and `row_bytes` are those of the graph. Selectivities that are unknown
    count as `assumed_selectivity`. Products are out of the question unless `cartesian`: on the
    engine, one worker would have all of one. Without a budget for CPU, the plan that is looked
    for takes as little of it as the optimizer can find. With a `quota`, a change must be worth
    its cost too: `change_s` tells how many seconds of a core it takes, if that is known.
    """

    trigger: Trigger
    window: float | Mapping[str, float]
    optimizer: str = "mjoin-init"
    budget: Budget = field(default_factory=Budget)
    model: CostModel = field(default_factory=NestedLoops)
    keys: Sequence[Sequence[str]] = ()
    row_bytes: Mapping[str, float] | None = None
    assumed_selectivity: float = 1.0
    cartesian: bool = False
    hysteresis: Hysteresis = field(default_factory=Hysteresis)
    quota: Quota | None = None
    change_s: Callable[[JoinGraph, str], float | None] = _nobody_knows
    log: QueryLog = field(default_factory=QueryLog)

    def __post_init__(self) -> None:
        """Refuse an optimizer that there is not."""
        if self.optimizer not in OPTIMIZERS:
            raise BraidError(
                f"unknown optimizer {self.optimizer!r}", hint=f"known: {', '.join(OPTIMIZERS)}"
            )

    def price(self, data: DataStatistics, tree: str, orders: str = "") -> Plan:
        """What a plan costs by some statistics."""
        return self._priced(self._graph(data), tree, orders)

    def advise(
        self, situation: Situation, tree: str, orders: str = ""
    ) -> tuple[Advisor, Advice]:
        """The advisor to ask next time, and the plan to change to; `tree` is what runs now."""
        trigger, decision = self.trigger.decide(situation)
        after = replace(self, trigger=trigger)
        if not decision.yes:
            return after, Advice(None, decision)
        graph = self._graph(situation.data)
        current = self._priced(graph, tree, orders)
        if self.quota is not None:
            quota = self.quota.after_search(situation.searched_s)
            if decision.has_changed:
                quota = quota.after_change(situation.elapsed_ms)
            after, verdict = replace(after, quota=quota), quota.may_search()
            if not verdict.yes:
                told = _told(decision, verdict)
                return after, Advice(None, told, current, decision)
        log, candidate = self._candidate(situation, graph, current)
        after = replace(after, log=log)
        if candidate is None:
            none = Decision(False, "no plan keeps both budgets", decision.numbers)
            return after, Advice(None, none, current, decision)
        return after._weighed(situation, decision, current, candidate)

    def consider(
        self,
        situation: Situation,
        tree: str,
        orders: str,
        others: Sequence[tuple[str, str]],
        cue: Decision,
        *,
        finds: bool = True,
    ) -> tuple[Advisor, Advice]:
        """The same on someone else's `cue`, who has other plans: trees with their orders.

        Each must be clearly better than those before it, and so must be the one that an
        optimizer `finds` in the end, if it is asked and its quota allows another search.
        """
        graph = self._graph(situation.data)
        best = current = self._priced(graph, tree, orders)
        for other in others:
            best = self._better(best, self._priced(graph, *other))
        if finds and self._may_search(situation):
            best = self._better(best, self._found(graph, best))
        return self._weighed(situation, cue, current, best)

    def _may_search(self, situation: Situation) -> bool:
        quota = self.quota
        return quota is None or quota.after_search(situation.searched_s).may_search().yes

    def _better(self, plan: Plan, other: Plan | None) -> Plan:
        """The other if it is a clear gain, else the plan."""
        if other is None or self.hysteresis.refusal(self.budget, plan, other) is not None:
            return plan
        return other

    def _weighed(
        self, situation: Situation, cue: Decision, current: Plan, candidate: Plan
    ) -> tuple[Advisor, Advice]:
        hysteresis, verdict = self.hysteresis.weigh(
            situation.elapsed_ms, self.budget, current, candidate
        )
        if verdict.yes and self.quota is not None:
            change_s = self.change_s(self._graph(situation.data), candidate.text)
            if change_s is not None:
                price = self.quota.weigh(change_s, current, candidate)
                numbers = {**verdict.numbers, **price.numbers}
                verdict = Decision(price.yes, price.reason or verdict.reason, numbers)
        if not verdict.yes:
            hysteresis = self.hysteresis  # nothing changes, so nothing rests
        verdict = _told(cue, verdict)
        advice = Advice(candidate if verdict.yes else None, verdict, current, cue)
        return replace(self, hysteresis=hysteresis), advice

    def _graph(self, data: DataStatistics) -> JoinGraph:
        return data.graph(
            self.window,
            keys=self.keys,
            row_bytes=self.row_bytes,
            assumed_selectivity=self.assumed_selectivity,
        )

    def _candidate(
        self, situation: Situation, graph: JoinGraph, current: Plan
    ) -> tuple[QueryLog, Plan | None]:
        """A plan from the log if it knows such statistics, else from the optimizer."""
        log, served = self.log.recall(situation.data)
        if served is not None:
            plan = self._priced(graph, served.tree, served.orders)
            if plan.qualified:
                return log, plan
        found = self._found(graph, current)
        return (log if found is None else log.remember(situation.data, found)), found

    def _found(self, graph: JoinGraph, current: Plan) -> Plan | None:
        """A plan within the budgets; if no CPU will do, or any, one with little of it.

        An optimizer takes the first plan that will do. So each one that is found is the measure
        for the next, until none saves enough any more.
        """
        find = partial(
            OPTIMIZERS[self.optimizer],
            graph,
            memory=self.budget.memory,
            cartesian=self.cartesian,
            model=self.model,
        )
        if self.budget.cpu < math.inf:
            within = find(cpu=self.budget.cpu)
            if within is not None:
                return within
        best = current if current.memory <= self.budget.memory else find()
        while best is not None and best.cpu > 0:
            found = find(cpu=(1 - self.hysteresis.gain) * best.cpu)
            if found is None or not found.qualified:
                break
            best = found
        return None if best is None else self._priced(graph, best.tree, best.orders)

    def _priced(self, graph: JoinGraph, tree: str, orders: str) -> Plan:
        return cost_of(
            graph,
            tree,
            orders,
            cpu=self.budget.cpu,
            memory=self.budget.memory,
            model=self.model,
        )
