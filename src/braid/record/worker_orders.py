"""What workers are told to do about their memory in a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from braid.state.groups import Ranges


RECEIVED = 0.5
"""What it takes to receive a row and to log it, joined or not; of what it takes to join it."""

_LEAST = 0.05  # of a share is for joining, whatever it takes to receive the rest


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a batch a worker may do: receive all that is sent to it, and join the most.

    A row counts as `usual`, with the results that most rows have of late; one of a `heavy`
    group, by space, as more.
    """

    most: float
    usual: float = 1.0
    heavy: Mapping[int, Mapping[int, float]] = field(default_factory=dict)

    def for_joining(self, received_rows: int) -> float:
        """How much may join, once so many rows have been received."""
        return max(self.most - RECEIVED * received_rows, _LEAST * self.most)

    def weights(self, space: int, groups: int) -> NDArray[np.float64]:
        """What a row of each group counts."""
        weights = np.full(groups, self.usual)
        for group, weight in self.heavy.get(space, {}).items():
            weights[group] = weight
        return weights

    def to_json(self) -> list[Any]:
        """The share as a JSON array."""
        heavy = [[space, [*found.items()]] for space, found in self.heavy.items()]
        return [self.most, self.usual, heavy]

    @classmethod
    def from_json(cls, data: list[Any]) -> Share:
        """The inverse of `to_json`."""
        most, usual, heavy = data
        return cls(most, usual, {space: dict(found) for space, found in heavy})


@dataclass(frozen=True, slots=True)
class WorkerOrders:
    """One worker's: groups to push out of memory, by space, and how much to clean up.

    With `defers`, rows on disk are not probed, and results with them are owed. Clean-up takes
    groups that owe results while they have less than `clean_bytes` on disk, and at least one.
    With `counts`, the worker reports what each of its groups weighs and does. `firm` memory
    takes nothing beyond `memory_bytes`: as long as groups move, the worker cannot spill. It
    joins no more than its `share` in a round; other rows wait. As nobody knows beforehand where
    rows will, all workers are told that some `may_wait`.
    """

    defers: bool = False
    spill: Mapping[int, Ranges] = field(default_factory=dict)
    clean_bytes: int = 0
    memory_bytes: int | None = None
    counts: bool = False
    firm: bool = False
    share: Share | None = None
    may_wait: bool = False

    def to_json(self) -> dict[str, Any]:
        """The chores as a JSON object."""
        return {
            "defers": self.defers,
            "spill": [[space, list(ranges)] for space, ranges in self.spill.items()],
            "clean_bytes": self.clean_bytes,
            "memory_bytes": self.memory_bytes,
            "counts": self.counts,
            "firm": self.firm,
            "share": None if self.share is None else self.share.to_json(),
            "may_wait": self.may_wait,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> WorkerOrders:
        """The inverse of `to_json`."""
        spill = {space: tuple((a, b) for a, b in ranges) for space, ranges in data["spill"]}
        share = None if data["share"] is None else Share.from_json(data["share"])
        return cls(**{**data, "spill": spill, "share": share})
