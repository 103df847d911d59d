"""The driver's clock, by which rows are too far ahead.

It is read once a batch and committed with it. Rows whose times are instants are compared with
it. Those whose times are what clocks on walls show (TIMESTAMP_NTZ) are compared with such a
clock in the session's time zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.events import instant

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


@dataclass(frozen=True, slots=True)
class DriverClock:
    """The driver's clock, and how far rows may be ahead of it, if there is a limit."""

    now_us: Callable[[], int]
    max_ahead: MaxAhead | None = None

    def read(self, before_us: int | None) -> tuple[int, tuple[str | None, str | None] | None]:
        """The time for a batch, after that of the batch before; and both, if it is put back.

        It never goes back, so that no row is refused which an earlier batch would take; but it
        was wrong then if it lies too far ahead of what it says now.
        """
        now_us = self.now_us()
        if before_us is None:
            return now_us, None
        if self.max_ahead is not None and self.max_ahead.is_wrong(before_us, now_us):
            return now_us, (instant(before_us), instant(now_us))
        return max(now_us, before_us), None

    def ahead_after_us(self, clock_us: int) -> int | None:
        """The time from which on rows are too far ahead, at a moment."""
        return None if self.max_ahead is None else self.max_ahead.after_us(clock_us)
