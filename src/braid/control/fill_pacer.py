"""How many groups a batch fills while the plan changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

_FIRST = 1 / 16  # of the groups, if nobody knows how long they take
_CAUTION = 4.0  # times longer than foreseen they may well take
_MOST_GROWTH = 4.0


@dataclass(frozen=True, slots=True)
class FillPacer:
    """As many groups at a time as take about `pause_ms`, on top of what batches take without.

    Two trees take longer than one, whether groups are filled or not; and the first batch of
    another plan is compiled. So what a group takes is told by batches that filled more of them
    and fewer, once there are some.
    """

    pause_ms: float
    usual_ms: float
    groups: float
    seen: tuple[tuple[float, float], ...] = ()  # groups, and how much longer they took

    @classmethod
    def of(
        cls, groups: int, pause_ms: float, usual_ms: float, foreseen_ms: float | None = None
    ) -> FillPacer:
        """Of so many groups, and what all of them are foreseen to take."""
        first = _FIRST
        if foreseen_ms is not None:
            first = min(1.0, pause_ms / max(1.0, _CAUTION * foreseen_ms))
        return cls(pause_ms, usual_ms, max(1.0, groups * first))

    def learned(self, elapsed_ms: float) -> FillPacer:
        """Once a batch that filled its groups has taken so long: how many will the next one?"""
        longer_ms = max(1.0, elapsed_ms - self.usual_ms)
        seen = (*self.seen, (self.groups, longer_ms))
        wanted = self.groups * self.pause_ms / longer_ms
        counts, times = np.array(seen[1:]).reshape(-1, 2).T
        if len(np.unique(counts)) > 1:
            each_ms = float(np.polyfit(counts, times, 1)[0])
            wanted = self.pause_ms / each_ms if each_ms > 0 else np.inf
        least, most = self.groups / _MOST_GROWTH, self.groups * _MOST_GROWTH
        groups = float(np.clip(wanted, max(1.0, least), max(1.0, most)))
        return replace(self, groups=groups, seen=seen)
