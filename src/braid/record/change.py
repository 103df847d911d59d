"""A change of plan under way, as the commit record has it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from braid.state.groups import marked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from braid.state.groups import Ranges


@dataclass(frozen=True, slots=True)
class Change:
    """From one tree to another, the last; of all groups, or of some.

    Without a boundary the old tree shows all results, and the `fresh` states of the new one are
    made complete, group by group: `filled` of the groups are, `filling` will be after the next
    batch. They are made where they are, or the old tree `feeds` the new one: then groups are
    those of the old one. With a boundary nothing is filled: the old tree shows the results
    whose deadline is before it, and the new one all others, whose members all came after the
    change had begun.
    """

    fresh: tuple[int, ...]
    boundary_us: int | None = None
    feeds: bool = False
    groups: Ranges | None = None
    filled: int = 0
    filling: int = 0

    @property
    def fills(self) -> bool:
        """Whether states are made complete, and the second tree shows nothing yet."""
        return self.boundary_us is None

    def marks(self, groups: int) -> NDArray[np.bool_]:
        """Which of so many groups change."""
        return marked([(0, groups)] if self.groups is None else self.groups, groups)

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Change:
        """The inverse of `to_json`."""
        groups = data["groups"] and tuple(map(tuple, data["groups"]))
        return cls(**data | {"fresh": tuple(data["fresh"]), "groups": groups})
