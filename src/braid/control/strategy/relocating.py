"""Relocation in pairs: half the difference, from the fullest worker to the emptiest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from braid.control.choose import Chooser, on_disk
from braid.model.checks import require_between, require_from
from braid.record.move import Move

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from braid.control.statistics import Snapshot, WorkerLoad

PRODUCTIVE_FIRST = Chooser("most-productive")
"""What moves stays in memory, so that it should be what earns most there."""


@dataclass(frozen=True, kw_only=True)
class RelocateSettings:
    """When a pair of workers is uneven enough to move groups, and how often.

    The pair is, if the emptiest has less than `theta_r` of the fullest one's memory. At least
    `tau_ms` pass between two relocations.
    """

    theta_r: float = 0.8
    tau_ms: float = 45_000

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        require_between("theta_r", self.theta_r, 0, 1)
        require_from("tau_ms", self.tau_ms, 0)

    def uneven_pair(self, snapshot: Snapshot) -> tuple[WorkerLoad, WorkerLoad] | None:
        """The fullest and the emptiest worker, if they are uneven."""
        movable = [load for load in snapshot.workers if load.movable]
        if len(movable) < 2:
            return None
        most = min(movable, key=lambda load: (-load.memory_bytes, load.worker))
        least = min(movable, key=lambda load: (load.memory_bytes, load.worker))
        uneven = least.memory_bytes < self.theta_r * most.memory_bytes
        return (most, least) if uneven else None

    def pair_relocations(self, snapshot: Snapshot) -> tuple[Move, ...]:
        """What to move between the uneven pair, if its time has come.

        One relocation at a time; a worker that spills finishes that first.
        """
        pair = self.uneven_pair(snapshot)
        if pair is None or snapshot.moves or not self._is_due(snapshot):
            return ()
        most, least = pair
        if {most.worker, least.worker} & snapshot.engaged:
            return ()
        numbers = {
            "most_bytes": most.memory_bytes,
            "least_bytes": least.memory_bytes,
            "theta_r": self.theta_r,
        }
        # Never more than half, or the groups would come back the next time.
        amount = min((most.memory_bytes - least.memory_bytes) / 2, least.room_bytes)
        chosen, _ = PRODUCTIVE_FIRST.choose_within(
            most.tables, amount, snapshot.batch, excluded=immovable(snapshot, most)
        )
        return relocations(most, least, chosen, "memory is uneven", numbers)

    def _is_due(self, snapshot: Snapshot) -> bool:
        last = snapshot.last_relocation_ms
        return last is None or snapshot.elapsed_ms - last >= self.tau_ms


def immovable(snapshot: Snapshot, load: WorkerLoad) -> dict[int, NDArray[np.bool_]]:
    """The groups of a worker that must stay where they are."""
    stay = on_disk(load.tables) if snapshot.defer else {}
    for space in snapshot.fixed & load.tables.keys():
        stay[space] = np.ones(len(load.tables[space]), bool)
    return stay


def relocations(
    sender: WorkerLoad,
    receiver: WorkerLoad,
    chosen: Mapping[int, tuple[int, ...]],
    reason: str,
    numbers: Mapping[str, float],
) -> tuple[Move, ...]:
    """One relocation per space of what was chosen."""
    moves = []
    for space, groups in chosen.items():
        table = sender.tables[space]
        amount = int(table.memory_bytes[table.places(groups)].sum())
        moves.append(
            Move(sender.worker, receiver.worker, space, groups, amount, reason, numbers)
        )
    return tuple(moves)
