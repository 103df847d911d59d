"""Clocks as Spark's session knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from braid.engine.clock import Shown

_SECOND_US = 1_000_000


def time_zone(spark: SparkSession) -> str:
    """The name of the session's time zone."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


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
