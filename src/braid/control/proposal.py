"""What a strategy may ask for. Asking changes nothing: the guard vets it, the engine acts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from braid.record.move import Move

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Spill:
    """Push groups, by space, from a worker's memory to its disk.

    `amount_bytes` is what the groups have in memory. `reason` is a short text, and `numbers`
    are the figures that led to it, for events.
    """

    worker: int
    groups: Mapping[int, tuple[int, ...]]
    amount_bytes: int
    reason: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


Proposal = Spill | Move
