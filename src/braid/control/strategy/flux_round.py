"""Rounds of Flux: collect for a while, decide, move, and begin anew (Shah et al., 5.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from braid.control.statistics import Snapshot


@dataclass(frozen=True)
class FluxRound:
    """How far a round is, and what was seen in it.

    The next collection takes as long as the last moves did, so that at most half of the time
    goes into moving; half as long as before, if nothing moved; and never less than a minimum.
    """

    delta_ms: float = 0.0
    since_ms: float | None = None
    moving_since_ms: float | None = None
    busy_ms: Mapping[int, float] = field(default_factory=dict)
    idle_ms: Mapping[int, float] = field(default_factory=dict)

    def after(self, snapshot: Snapshot, delta_min_ms: float) -> FluxRound:
        """The round with what this snapshot adds; moves that ended begin the next one."""
        now = snapshot.elapsed_ms
        if self.moving_since_ms is not None:
            if snapshot.moves:
                return self
            return FluxRound(max(delta_min_ms, now - self.moving_since_ms), now)
        delta = max(delta_min_ms, self.delta_ms)
        if self.since_ms is None:
            # The very first snapshot: its figures are of the time before it.
            since = now - max(
                (load.busy_ms + load.idle_ms for load in snapshot.workers), default=0.0
            )
        else:
            since = self.since_ms
        busy = {
            load.worker: self.busy_ms.get(load.worker, 0.0) + load.busy_ms
            for load in snapshot.workers
        }
        idle = {
            load.worker: self.idle_ms.get(load.worker, 0.0) + load.idle_ms
            for load in snapshot.workers
        }
        return FluxRound(delta, since, None, busy, idle)

    def is_over(self, snapshot: Snapshot) -> bool:
        """Whether enough was collected to decide, with nothing in flight."""
        if self.since_ms is None or self.moving_since_ms is not None or snapshot.moves:
            return False
        return bool(self.busy_ms) and snapshot.elapsed_ms - self.since_ms >= self.delta_ms

    def decided(self, snapshot: Snapshot, moved: bool, delta_min_ms: float) -> FluxRound:
        """The round once its decision is made."""
        if moved:
            return replace(self, moving_since_ms=snapshot.elapsed_ms)
        return FluxRound(max(delta_min_ms, self.delta_ms / 2), snapshot.elapsed_ms)

    def utilisation(self) -> dict[int, float]:
        """The part of the round that each worker was busy for."""
        spent = {worker: self.busy_ms[worker] + self.idle_ms[worker] for worker in self.busy_ms}
        return {
            worker: self.busy_ms[worker] / time if time > 0 else 0.0
            for worker, time in spent.items()
        }
