"""A change of plan under way, as the commit record has it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """From the first of two trees to the second.

    Without a boundary the first shows all results, and the `fresh` states of the second are
    made complete, group by group: `filled` of the groups are, `filling` will be after the next
    batch. They are made where they are, or the first tree `feeds` the second: then groups are
    those of the first. With a boundary nothing is filled: the first shows the results whose
    deadline is before it, and the second all others, whose members all came after the change
    had begun.
    """

    fresh: tuple[int, ...]
    boundary_us: int | None = None
    feeds: bool = False
    filled: int = 0
    filling: int = 0

    @property
    def fills(self) -> bool:
        """Whether states are made complete, and the second tree shows nothing yet."""
        return self.boundary_us is None

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Change:
        """The inverse of `to_json`."""
        return cls(**data | {"fresh": tuple(data["fresh"])})
