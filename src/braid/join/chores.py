"""What workers are told to do about their memory in a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Ranges = tuple[tuple[int, int], ...]
"""Half-open ranges of groups."""


@dataclass(frozen=True, slots=True)
class Chores:
    """One worker's: groups to push out of memory, by space, and how much to clean up.

    With `defers`, rows on disk are not probed, and results with them are owed. Clean-up takes
    groups that owe results while they have less than `clean_bytes` on disk, and at least one.
    With `counts`, the worker reports what each of its groups weighs and does. `firm` memory
    takes nothing beyond `memory_bytes`: as long as groups move, the worker cannot spill. It
    joins no more than `most_rows` in a round; the others wait. As nobody knows beforehand where
    rows will, all workers are told that some `may_wait`.
    """

    defers: bool = False
    spill: Mapping[int, Ranges] = field(default_factory=dict)
    clean_bytes: int = 0
    memory_bytes: int | None = None
    counts: bool = False
    firm: bool = False
    most_rows: int | None = None
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
            "most_rows": self.most_rows,
            "may_wait": self.may_wait,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Chores:
        """The inverse of `to_json`."""
        spill = {space: tuple((a, b) for a, b in ranges) for space, ranges in data["spill"]}
        return cls(**{**data, "spill": spill})
