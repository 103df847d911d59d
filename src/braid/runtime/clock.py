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

    from pyspark.sql import SparkSession

    Shown = Callable[[int], int]
    """The latest time that clocks like those of the rows have shown by a moment."""

_SECOND_US = 1_000_000


def time_zone(spark: SparkSession) -> str:
    """The name of the session's time zone."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


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


def wall_clock(spark: SparkSession) -> Shown:
    """What clocks on walls show in the session's time zone.

    Where they were put back, that is the time before, until they show it again: an honest row
    may have it. Java is asked, for it knows zones as Spark does, such as `+05:30`.
    """
    java = spark._jvm
    assert java is not None, "a classic session has a JVM"
    dates = java.org.apache.spark.sql.catalyst.util.DateTimeUtils
    rules = dates.getZoneId(time_zone(spark)).getRules()

    def shown(clock_us: int) -> int:
        moment = java.java.time.Instant.ofEpochMilli(clock_us // 1000)
        latest_us: int = clock_us + rules.getOffset(moment).getTotalSeconds() * _SECOND_US
        change = rules.previousTransition(moment)
        if change is None:
            return latest_us
        before_s: int = change.toEpochSecond() + change.getOffsetBefore().getTotalSeconds()
        return max(latest_us, before_s * _SECOND_US)

    return shown
