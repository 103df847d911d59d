"""Groups on their way from one worker to another, and rows that wait in front of the join.

While a group moves, its rows go to the worker that will have it, and wait there in the log, for
its state is somewhere between the two. All else goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from braid.state.groups import ranges_with
from braid.state.runs import Section, SortedRun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from braid.state.groups import Ranges


MoveKey = tuple[int, int, int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Move:
    """Groups of one space on their way from a worker to another, from proposal to arrival.

    They have `amount_bytes` in memory. `reason` is a short text, and `numbers` are the figures
    that led to the move. The `runs` are what the groups were taken out in, by state; until the
    sender has done that, there are none. No result that the groups will give is from before
    `since_us`, the watermark when they stopped.
    """

    sender: int
    receiver: int
    space: int
    groups: tuple[int, ...]
    amount_bytes: int = 0
    reason: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    since_us: int | None = field(default=None, repr=False)
    runs: Mapping[int, SortedRun] | None = field(default=None, repr=False)

    @property
    def key(self) -> MoveKey:
        """What tells it from others: a group is in one move at a time."""
        return self.sender, self.receiver, self.space, self.groups

    @property
    def ranges(self) -> Ranges:
        """The groups, as ranges of them."""
        return ranges_with(self.groups)

    def marks(self, groups: int) -> NDArray[np.bool_]:
        """Which of so many groups move."""
        marks = np.zeros(groups, bool)
        marks[list(self.groups)] = True
        return marks

    def to_json(self) -> dict[str, Any]:
        """The move as a JSON object."""
        runs = None
        if self.runs is not None:
            runs = [[state, run.to_json()] for state, run in self.runs.items()]
        return {
            "space": self.space,
            "groups": [list(ends) for ends in self.ranges],
            "sender": self.sender,
            "receiver": self.receiver,
            "amount_bytes": self.amount_bytes,
            "reason": self.reason,
            "numbers": dict(self.numbers),
            "since_us": self.since_us,
            "runs": runs,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Move:
        """The inverse of `to_json`; older records know no reasons."""
        runs = None
        if data["runs"] is not None:
            runs = {state: SortedRun.from_json(run) for state, run in data["runs"]}
        groups = tuple(g for first, end in data["groups"] for g in range(first, end))
        return cls(**{**data, "groups": groups, "runs": runs})


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows that came by a port of a round, and wait; none is older than `since_us`."""

    space: int
    round: int
    port: int
    section: Section
    since_us: int | None

    def to_json(self) -> list[Any]:
        """The rows' place as a JSON array."""
        return [self.space, self.round, self.port, self.section.to_json(), self.since_us]

    @classmethod
    def from_json(cls, data: list[Any]) -> Waiting:
        """The inverse of `to_json`."""
        space, number, port, section, since_us = data
        return cls(space, number, port, Section.from_json(section), since_us)
