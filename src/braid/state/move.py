"""Groups on their way from one worker to another, and rows that wait in front of the join.

While a group moves, its rows go to the worker that will have it, and wait there in the log, for
its state is somewhere between the two. All else goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from braid.state.runs import Run, Section, marked

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Move:
    """Some groups of a space, and the runs that they were taken out in, by state.

    Until the sender has done that, there are none. No result that the groups will give is from
    before `since_us`, the watermark when they stopped.
    """

    space: int
    groups: tuple[tuple[int, int], ...]
    sender: int
    receiver: int
    since_us: int | None
    runs: Mapping[int, Run] | None = None

    def marks(self, groups: int) -> NDArray[np.bool_]:
        """Which of so many groups move."""
        return marked(self.groups, groups)

    def to_json(self) -> dict[str, Any]:
        """The move as a JSON object."""
        runs = None
        if self.runs is not None:
            runs = [[state, run.to_json()] for state, run in self.runs.items()]
        return {
            "space": self.space,
            "groups": [list(ends) for ends in self.groups],
            "sender": self.sender,
            "receiver": self.receiver,
            "since_us": self.since_us,
            "runs": runs,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Move:
        """The inverse of `to_json`."""
        runs = None
        if data["runs"] is not None:
            runs = {state: Run.from_json(run) for state, run in data["runs"]}
        groups = tuple((first, end) for first, end in data["groups"])
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
