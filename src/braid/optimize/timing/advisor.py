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
    from braid.optimize.timing.statistics import Situation

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
    it was time, `current` is the plan that runs, with its costs.
    """

    plan: Plan | None
    decision: Decision
    current: Plan | None = None


@dataclass(frozen=True, kw_only=True)
class Advisor:
    """Asks a trigger, an optimizer or the log, and hysteresis; frozen, as all of them are.

    `window`, `keys` and `row_bytes` are those of the graph. Selectivities that are unknown
    count as `assumed_selectivity`. Products are out of the question unless `cartesian`: on the
    engine, one worker would have all of one. Without a budget for CPU, the plan that is looked
    for takes as little of it as the optimizer can find.
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
    log: QueryLog = field(default_factory=QueryLog)

    def __post_init__(self) -> None:
        """Refuse an optimizer that there is not."""
        if self.optimizer not in OPTIMIZERS:
            raise BraidError(
                f"unknown optimizer {self.optimizer!r}", hint=f"known: {', '.join(OPTIMIZERS)}"
            )

    def advise(
        self, situation: Situation, tree: str, orders: str = ""
    ) -> tuple[Advisor, Advice]:
        """The advisor to ask next time, and the plan to change to; `tree` is what runs now."""
        trigger, decision = self.trigger.decide(situation)
        after = replace(self, trigger=trigger)
        if not decision.yes:
            return after, Advice(None, decision)
        graph = situation.data.graph(
            self.window,
            keys=self.keys,
            row_bytes=self.row_bytes,
            assumed_selectivity=self.assumed_selectivity,
        )
        current = self._priced(graph, tree, orders)
        log, candidate = self._candidate(situation, graph, current)
        after = replace(after, log=log)
        if candidate is None:
            none = Decision(False, "no plan keeps both budgets", decision.numbers)
            return after, Advice(None, none, current)
        hysteresis, verdict = self.hysteresis.weigh(
            situation.elapsed_ms, self.budget, current, candidate
        )
        reason = f"{decision.reason}: {verdict.reason}"
        verdict = Decision(verdict.yes, reason, {**decision.numbers, **verdict.numbers})
        after = replace(after, hysteresis=hysteresis)
        return after, Advice(candidate if verdict.yes else None, verdict, current)

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
        """A plan within the budgets; if CPU has none, one that saves as much as can be.

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
            return find(cpu=self.budget.cpu)
        best = current if current.qualified else find()
        while best is not None and best.cpu > 0:
            found = find(cpu=(1 - self.hysteresis.gain) * best.cpu)
            if found is None or not found.qualified:
                break
            best = found
        return best

    def _priced(self, graph: JoinGraph, tree: str, orders: str) -> Plan:
        return cost_of(
            graph,
            tree,
            orders,
            cpu=self.budget.cpu,
            memory=self.budget.memory,
            model=self.model,
        )
