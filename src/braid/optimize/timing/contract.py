"""What every trigger promises."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from braid.optimize.timing.statistics import Situation


@dataclass(frozen=True)
class Decision:
    """Yes or no, a short text that says why, and the figures that led to it.

    `has_changed` says that statistics have begun to differ from those that stood.
    """

    yes: bool
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    has_changed: bool = False


class Trigger(Protocol):
    """Says after every batch whether it is time to look for another plan.

    A trigger is a frozen object, and what it remembers is in it: `decide` also gives the one to
    ask next time. Same trigger, same situation: same answer. Asking too often costs only the
    time of an optimizer; hysteresis keeps the plan from changing as often.
    """

    def decide(self, situation: Situation, /) -> tuple[Trigger, Decision]:
        """The trigger to ask next time, and whether to optimize now."""
        ...
