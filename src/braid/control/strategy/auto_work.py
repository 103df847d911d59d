"""What `auto` does about uneven work: a batch is as slow as its slowest worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from braid.control.choose import Candidates, all_fitting
from braid.control.strategy.relocating import immovable, relocations
from braid.control.strategy.trend import recent_rows, row_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from braid.control.statistics import WorkerLoad
    from braid.control.strategy.auto_memory import Forecast
    from braid.record.move import Move


def work_relocations(
    forecast: Forecast,
    busy_ms: Mapping[int, float],
    imbalance: float,
    payback_batches: float,
    gain_ms: float,
) -> tuple[Move, ...]:
    """Moves between the busiest and the idlest workers, paired from both ends, that pay."""
    engaged = forecast.snapshot.engaged
    free = [x for x in forecast.fullest_first if x.movable and x.worker not in engaged]
    order = sorted(free, key=lambda load: (-busy_ms[load.worker], load.worker))
    if len(order) < 2:
        return ()
    average = sum(busy_ms[load.worker] for load in order) / len(order)
    moves: list[Move] = []
    for donor, receiver in zip(order[: len(order) // 2], reversed(order), strict=False):
        if busy_ms[donor.worker] < imbalance * average:
            break
        half_ms = (busy_ms[donor.worker] - busy_ms[receiver.worker]) / 2
        if half_ms >= gain_ms:
            moves += _move(forecast, donor, receiver, busy_ms, half_ms, payback_batches)
    return tuple(moves)


def _move(
    forecast: Forecast,
    donor: WorkerLoad,
    receiver: WorkerLoad,
    busy_ms: Mapping[int, float],
    half_ms: float,
    payback_batches: float,
) -> tuple[Move, ...]:
    """The groups with most rows of late per byte of state, for half the difference."""
    rows = recent_rows(donor)
    if rows <= 0:
        return ()
    row_ms = busy_ms[donor.worker] / rows
    which = Candidates.of(donor.tables, immovable(forecast.snapshot, donor))
    ranked = np.lexsort((which.group, which.space, -which.recent_rows / which.memory_bytes))
    places = all_fitting(
        ranked[which.recent_rows[ranked] > 0], which.recent_rows, half_ms / row_ms
    )
    # Half of the room: what moves grows, and memory must not become the next trouble.
    places = all_fitting(places, which.memory_bytes, forecast.free_bytes(receiver) / 2)
    won_ms = float(which.recent_rows[places].sum()) * row_ms
    moved_bytes = float(which.memory_bytes[places].sum())
    # Rows are taken out on one side and inserted on the other.
    cost_ms = 2 * row_ms * moved_bytes / max(row_bytes(donor), 1.0)
    if not won_ms * payback_batches > cost_ms:
        return ()
    numbers = {
        "donor_ms": busy_ms[donor.worker],
        "receiver_ms": busy_ms[receiver.worker],
        "won_ms": won_ms,
        "cost_ms": cost_ms,
    }
    return relocations(donor, receiver, which.chosen(places), "work is uneven", numbers)
