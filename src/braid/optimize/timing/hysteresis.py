"""Whether a plan that was found is worth the change, so that plans do not thrash."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from braid.model.checks import require_within
from braid.optimize.timing.contract import Decision

if TYPE_CHECKING:
    from braid.optimize.plan import Budget, Plan

_CALM = 4
"""A plan that lasted so many rests was no mistake."""


@dataclass(frozen=True, kw_only=True)
class Hysteresis:
    """Change the plan only for a clear gain, and the less often, the more often it was in vain.

    A plan that misses a budget is left for one that presses it by `gain` less; one that keeps
    both, for another that keeps them too with `gain` less CPU. After a change the plan rests
    for `rest_ms`. If it changes again soon after, the next rest is twice as long, and so on; a
    plan that lasts for four rests ends that. So if statistics swing to and fro faster than
    that, the number of changes grows with the logarithm of time only.
    """

    gain: float = 0.2
    rest_ms: float = 60_000
    changed_ms: float | None = field(default=None, metadata={"memory": True})
    doubled: int = field(default=0, metadata={"memory": True})

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        require_within("gain", self.gain, 0, 1)
        require_within("rest_ms", self.rest_ms, 0)

    @property
    def next_rest_ms(self) -> float:
        """For how long the plan rests since the last change."""
        return self.rest_ms * 2.0**self.doubled

    def weigh(
        self, elapsed_ms: float, budget: Budget, current: Plan, candidate: Plan
    ) -> tuple[Hysteresis, Decision]:
        """Whether to change to the candidate; both plans' costs are by the same statistics."""
        numbers = {
            "cpu": current.cpu,
            "memory": current.memory,
            "new_cpu": candidate.cpu,
            "new_memory": candidate.memory,
        }
        if (candidate.tree, candidate.orders) == (current.tree, current.orders):
            return self, Decision(False, "the plan is the best that was found", numbers)
        refusal = self.refusal(budget, current, candidate)
        if refusal is not None:
            return self, Decision(False, refusal, numbers)
        lasted_ms = None if self.changed_ms is None else elapsed_ms - self.changed_ms
        if lasted_ms is not None and lasted_ms < self.next_rest_ms:
            left = {"rest_ms": self.next_rest_ms - lasted_ms}
            return self, Decision(False, "the last change is too recent", numbers | left)
        calm = lasted_ms is None or lasted_ms >= _CALM * self.next_rest_ms
        after = replace(self, changed_ms=elapsed_ms, doubled=0 if calm else self.doubled + 1)
        reason = "the plan misses a budget" if not current.qualified else "another saves CPU"
        return after, Decision(True, reason, numbers)

    def refusal(self, budget: Budget, current: Plan, candidate: Plan) -> str | None:
        """Why the candidate is not worth a change, if it is not."""
        kept = 1 - self.gain
        if not budget.allows(current.cpu, current.memory):
            now = budget.pressure(current.cpu, current.memory)
            then = budget.pressure(candidate.cpu, candidate.memory)
            return None if then <= kept * now else "no plan was found that fits much better"
        if not budget.allows(candidate.cpu, candidate.memory):
            return "the plan keeps its budgets, and the other would not"
        return None if candidate.cpu <= kept * current.cpu else "too little would be saved"
