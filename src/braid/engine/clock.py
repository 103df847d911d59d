"""The driver's clock, by which rows are too far ahead.

It is read once a batch and committed with it. Rows whose times are instants are compared with
it. Those whose times are what clocks on walls show (TIMESTAMP_NTZ) are compared with such a
clock in the session's time zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Shown = Callable[[int], int]
    """The latest time that clocks like those of the rows have shown by a moment."""


@dataclass(frozen=True, slots=True)
class MaxAhead:
    """How far rows may be ahead of the driver's clock."""

    most_us: int
    shown: Shown

    def after_us(self, clock_us: int) -> int:
        """The time from which on rows are too far ahead, at a moment."""
        return self.shown(clock_us) + self.most_us

    def is_wrong(self, recorded_us: int, now_us: int) -> bool:
        """Whether a recorded moment lies so far ahead itself that the clock was wrong then.

        Going by it, a run would let rows through that are twice too far ahead, and more.
        """
        return recorded_us - now_us > self.most_us


def instant_clock(clock_us: int) -> int:
    """The moment itself."""
    return clock_us
