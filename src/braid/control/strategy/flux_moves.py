"""What a round of Flux moves: one group per pair of workers, if that evens the pair out.

Workers are sorted by their load and paired from both ends. Of each pair's groups, the first
one moves that makes the difference smaller; the receiver must have room for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from braid.control.strategy.relocating import immovable, relocations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from braid.control.statistics import Snapshot, WorkerLoad
    from braid.record.move import Move


def load_moves(
    snapshot: Snapshot, utilisation: Mapping[int, float], th_imb: float, th_util: float
) -> tuple[Move, ...]:
    """Moves that even out how busy workers are (5.3)."""
    loads = [load for load in _free(snapshot) if load.worker in utilisation]
    if not loads:
        return ()
    average = sum(utilisation[load.worker] for load in loads) / len(loads)
    moves: list[Move] = []
    for donor, receiver in _pairs(sorted(loads, key=lambda x: -utilisation[x.worker])):
        high, low = utilisation[donor.worker], utilisation[receiver.worker]
        if high < average or high < th_imb * low or low > th_util or high <= low:
            continue
        spaces, groups, rows, _, _ = _groups(snapshot, donor, receiver)
        sent, had = _processed(donor), _processed(receiver)
        if not len(groups) or sent <= 0:
            continue
        # A receiver that had nothing to do is taken to be as quick as the donor.
        after_low = low + (low * rows / had if had > 0 and low > 0 else high * rows / sent)
        after_high = high * (1 - rows / sent)
        helps = (np.abs(after_high - after_low) < high - low) & (after_low <= 1) & (rows > 0)
        numbers = {"donor": high, "receiver": low, "average": average}
        order = np.lexsort((groups, spaces, -rows))
        moves += _first(
            donor, receiver, spaces, groups, order, helps, "work is uneven", numbers
        )
    return tuple(moves)


def memory_moves(snapshot: Snapshot, th_imb: float) -> tuple[Move, ...]:
    """Moves that even out the excess capacity, which is the budget less all state (6.1)."""
    loads = _free(snapshot)
    if not loads:
        return ()
    # A worker without a budget has room for all of the state.
    everything = sum(load.total_bytes for load in snapshot.workers)
    budget = {
        load.worker: everything if load.budget_bytes is None else load.budget_bytes
        for load in loads
    }
    excess = {load.worker: budget[load.worker] - load.total_bytes for load in loads}
    average = sum(excess.values()) / len(excess)
    moves: list[Move] = []
    for donor, receiver in _pairs(sorted(loads, key=lambda load: excess[load.worker])):
        low, high = excess[donor.worker], excess[receiver.worker]
        full = donor.total_bytes * budget[receiver.worker]
        empty = receiver.total_bytes * budget[donor.worker]
        if low > average or full < th_imb * empty or low >= high:
            continue
        spaces, groups, _, size, disk = _groups(snapshot, donor, receiver)
        helps = (size > 0) & (size < high - low)
        numbers = {"donor_bytes": low, "receiver_bytes": high, "average_bytes": average}
        order = np.lexsort((groups, spaces, -size, disk > 0))  # what has no disk part first
        moves += _first(
            donor, receiver, spaces, groups, order, helps, "excess capacity is uneven", numbers
        )
    return tuple(moves)


def _free(snapshot: Snapshot) -> list[WorkerLoad]:
    engaged = snapshot.engaged
    return [load for load in snapshot.workers if load.movable and load.worker not in engaged]


def _pairs(loads: Sequence[WorkerLoad]) -> Iterator[tuple[WorkerLoad, WorkerLoad]]:
    """The first with the last, the second with the last but one, and so on."""
    half = len(loads) // 2
    return zip(loads[:half], reversed(loads[-half:] if half else ()), strict=True)


def _processed(load: WorkerLoad) -> float:
    """Rows that a worker took in per batch of late."""
    return float(sum(table.recent_rows.sum() for table in load.tables.values()))


def _groups(
    snapshot: Snapshot, donor: WorkerLoad, receiver: WorkerLoad
) -> tuple[NDArray[Any], ...]:
    """The donor's groups that may go: spaces, ids, recent rows, sizes, bytes on disk."""
    stay = immovable(snapshot, donor)
    parts: list[list[NDArray[Any]]] = [[np.empty(0, np.int64)] for _ in range(5)]
    for space, table in donor.tables.items():
        may = table.memory_bytes <= receiver.room_bytes
        if space in stay:
            may &= ~stay[space]
        spaces = np.full(len(table), space, np.int64)
        columns = (spaces, table.group, table.recent_rows, table.total_bytes, table.disk_bytes)
        for part, column in zip(parts, columns, strict=True):
            part.append(column[may])
    return tuple(np.concatenate(part) for part in parts)


def _first(
    donor: WorkerLoad,
    receiver: WorkerLoad,
    spaces: NDArray[Any],
    groups: NDArray[Any],
    order: NDArray[Any],
    helps: NDArray[np.bool_],
    reason: str,
    numbers: Mapping[str, float],
) -> tuple[Move, ...]:
    """The move of the first group, in some order, that helps."""
    able = order[helps[order]]
    if not len(able):
        return ()
    chosen = {int(spaces[able[0]]): (int(groups[able[0]]),)}
    return relocations(donor, receiver, chosen, reason, numbers)
