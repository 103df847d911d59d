"""Whether a figure rises steadily, which another plan may cure, or has only jumped."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from braid.optimize.timing.statistics import Measure

_QUARTERS = 4
_SUDDEN = 0.7  # of a whole rise in one quarter of the time


@dataclass(frozen=True, slots=True)
class Rise:
    """From the first to the last quarter of a period; `steady` if all quarters had a part."""

    before: float
    after: float
    steady: bool


@dataclass(frozen=True, slots=True)
class FigureTrend:
    """What a figure was during the last `period_ms`, oldest first."""

    period_ms: float
    samples: tuple[tuple[float, float], ...] = ()

    def after(self, elapsed_ms: float, measure: Measure) -> FigureTrend:
        """The trend with one more number; unknown ones say nothing."""
        if measure.value is None:
            return self
        # One sample from before the period stays, so that there is something to see it whole.
        first = elapsed_ms - self.period_ms
        recent = [at for at, _ in self.samples if at <= first]
        kept = tuple(s for s in self.samples if not recent or s[0] >= recent[-1])
        return FigureTrend(self.period_ms, (*kept, (elapsed_ms, measure.value)))

    def rise(self, growth: float) -> Rise | None:
        """How a figure rose during a whole period, if it did by `growth` of itself."""
        quarters = self._quarters()
        if quarters is None:
            return None
        before, after = quarters[0], quarters[-1]
        steps = [later - earlier for earlier, later in pairwise(quarters)]
        rising = after > before * (1 + growth) and after > 0
        if not rising:
            return None
        steady = min(steps) > 0 and max(steps) <= _SUDDEN * (after - before)
        return Rise(before, after, steady)

    def _quarters(self) -> list[float] | None:
        """The mean of each quarter; None unless all are known and cover the period."""
        if not self.samples or self.samples[-1][0] - self.samples[0][0] < self.period_ms:
            return None
        end = self.samples[-1][0]
        parts: list[list[float]] = [[] for _ in range(_QUARTERS)]
        for at, value in self.samples:
            age = (end - at) / self.period_ms * _QUARTERS
            parts[_QUARTERS - 1 - min(int(age), _QUARTERS - 1)].append(value)
        return [mean(part) for part in parts] if all(parts) else None
