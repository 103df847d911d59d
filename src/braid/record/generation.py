"""Generations: what of some groups was pushed to disk at one time, and is not probed there.

Rows of a group that come afterwards start a new generation in memory, which may be pushed out
in its turn. The results within a generation are made while it is in memory; those between
generations are *owed*, until a clean-up makes them and one generation of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from braid.state.groups import marked
from braid.state.runs import Section, SortedRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Generation:
    """The rows of some groups of a space, in a run per state.

    No row of it is older than the horizon under `watermark_us`, the watermark of its birth. Its
    runs may have rows of other groups too, which do not count any more. If it `owes` results,
    they are all younger than `since_us`, the watermark when it began to.
    """

    space: int
    born: int  # in which batch
    groups: tuple[tuple[int, int], ...]
    watermark_us: int | None
    runs: Mapping[int, SortedRun]
    owes: bool = False
    since_us: int | None = None

    def marks(self, groups: int) -> NDArray[np.bool_]:
        """Which of so many groups it has rows of."""
        return marked(self.groups, groups)

    def sections(self) -> Iterator[Section]:
        """The log sections that it needs."""
        for run in self.runs.values():
            yield from run.backing

    @property
    def length(self) -> int:
        """Its bytes on disk."""
        return sum(run.length for run in self.runs.values())

    def to_json(self) -> dict[str, Any]:
        """The generation as a JSON object."""
        return {
            "space": self.space,
            "born": self.born,
            "groups": [list(ends) for ends in self.groups],
            "watermark_us": self.watermark_us,
            "runs": [[state, run.to_json()] for state, run in self.runs.items()],
            "owes": self.owes,
            "since_us": self.since_us,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Generation:
        """The inverse of `to_json`."""
        return cls(
            space=data["space"],
            born=data["born"],
            groups=tuple((first, end) for first, end in data["groups"]),
            watermark_us=data["watermark_us"],
            runs={state: SortedRun.from_json(run) for state, run in data["runs"]},
            owes=data["owes"],
            since_us=data["since_us"],
        )
