"""`refined`: as `memory`, but it looks between the joins too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.optimize.timing.memory_driven import MemoryDriven

if TYPE_CHECKING:
    from collections.abc import Mapping

    from braid.optimize.timing.statistics import Load, Measure


@dataclass(frozen=True, kw_only=True)
class RefinedMemoryDriven(MemoryDriven):
    """Optimize also when the rows that an inner join keeps have risen for a period.

    Two joins in the wrong order show there first. Until their rows hold up what comes in, the
    cause may be long past.
    """

    def watched(self, load: Load) -> Mapping[str, Measure]:
        """The backlog, and the state of every inner join."""
        inner = {f"rows of {name}": rows for name, rows in load.intermediate_rows.items()}
        return {**super().watched(load), **inner}
