"""`memory`: optimize when memory or the backlog says that the plan cannot keep up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from braid.model.checks import require_within
from braid.optimize.timing.contract import Decision
from braid.optimize.timing.trend import FigureTrend

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from braid.optimize.timing.statistics import Load, Measure, Situation


@dataclass(frozen=True, kw_only=True)
class MemoryDriven:
    """Optimize when memory nears its budget, or the backlog has risen for a period.

    Near is `high_water` of the budget. A plan without CPU enough is seen by the rows that wait,
    or that the sources have and nobody has read: they must rise by `growth` during `period_ms`,
    in all of its quarters. A jump is no reason: before another plan is in place it may be over,
    and spilling helps at once. At least `interval_ms` pass between two times.
    """

    high_water: float = 0.9
    period_ms: float = 30_000
    growth: float = 0.5
    interval_ms: float = 60_000
    optimized_ms: float | None = field(default=None, metadata={"memory": True})
    trends: Mapping[str, FigureTrend] = field(default_factory=dict, metadata={"memory": True})

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        require_within("high_water", self.high_water, 0, 1)
        require_within("period_ms", self.period_ms, 0)
        require_within("growth", self.growth, 0)
        require_within("interval_ms", self.interval_ms, 0)

    def watched(self, load: Load) -> Mapping[str, Measure]:
        """The figures that should not rise, by name."""
        return {"waiting rows": load.waiting_rows, "unread rows": load.unread_rows}

    def decide(self, situation: Situation, /) -> tuple[Self, Decision]:
        """Optimize if memory is nearly full, or else if a figure that is watched rises."""
        trends = {
            name: self.trends.get(name, FigureTrend(self.period_ms)).after(
                situation.elapsed_ms, measure
            )
            for name, measure in self.watched(situation.load).items()
        }
        seen = replace(self, trends=trends)
        last = self.optimized_ms
        if last is not None and situation.elapsed_ms - last < self.interval_ms:
            numbers = {"passed_ms": situation.elapsed_ms - last}
            return seen, Decision(False, "the interval is not over", numbers)
        decision = seen._nearly_full(situation.load) or seen._rising()
        if not decision.yes:
            return seen, decision
        # What was seen so far was under another plan, or will be.
        return replace(seen, optimized_ms=situation.elapsed_ms, trends={}), decision

    def _nearly_full(self, load: Load) -> Decision | None:
        mark = self.high_water * load.memory_budget
        if load.memory.value is None or load.memory.value < mark:
            return None
        numbers = {"memory": load.memory.value, "mark": mark}
        return Decision(True, "memory is near its budget", numbers)

    def _rising(self) -> Decision:
        reason = "memory and backlog are steady"
        numbers: dict[str, float] = {}
        for name, trend in self.trends.items():
            rise = trend.rise(self.growth)
            if rise is None:
                continue
            found = {"before": rise.before, "after": rise.after, "period_ms": self.period_ms}
            if rise.steady:
                return Decision(True, f"{name} have risen steadily", found)
            reason, numbers = f"{name} have risen, but not steadily", found
        return Decision(False, reason, numbers)
