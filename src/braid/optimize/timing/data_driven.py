"""`data`: optimize when the statistics have changed, but not all the time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from braid.model.checks import require_within
from braid.optimize.timing.contract import Decision

if TYPE_CHECKING:
    from braid.optimize.timing.statistics import DataStatistics, Situation


_IN_MOTION = 0.25


@dataclass(frozen=True, kw_only=True)
class DataDriven:
    """Optimize if any number has changed by `threshold` of itself since the last time.

    At least `interval_ms` pass between two times, unless `eager`. The first time is when the
    first interval is over, as the plan was made without any statistics. What has changed may be
    on its way still: until it stands, a quarter of the threshold is enough for another time.
    """

    interval_ms: float = 60_000
    threshold: float = 0.5
    eager: bool = False
    optimized_ms: float | None = field(default=None, metadata={"memory": True})
    basis: DataStatistics | None = field(default=None, metadata={"memory": True})
    in_motion: bool = field(default=False, metadata={"memory": True})

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        require_within("interval_ms", self.interval_ms, 0)
        require_within("threshold", self.threshold, 0, 1)

    def decide(self, situation: Situation, /) -> tuple[DataDriven, Decision]:
        """Optimize when the interval is over and the change is large enough."""
        if self.optimized_ms is None:
            started = replace(self, optimized_ms=situation.elapsed_ms)
            return started, Decision(False, "statistics have only begun")
        passed_ms = situation.elapsed_ms - self.optimized_ms
        change, which = (
            (1.0, "") if self.basis is None else situation.data.change_since(self.basis)
        )
        enough = self.threshold * (_IN_MOTION if self.in_motion else 1.0)
        numbers = {"passed_ms": passed_ms, "change": change, "threshold": enough}
        if passed_ms < self.interval_ms and not self.eager:
            return self, Decision(False, "the interval is not over", numbers)
        if change < enough:
            still = replace(self, in_motion=False)
            return still, Decision(False, "statistics have hardly changed", numbers)
        is_first = self.basis is None
        after = replace(
            self,
            optimized_ms=situation.elapsed_ms,
            basis=situation.data,
            in_motion=not is_first,
        )
        reason = f"{which} has changed" if which else "the plan was made without statistics"
        has_changed = not (is_first or self.in_motion)
        return after, Decision(True, reason, numbers, has_changed)
