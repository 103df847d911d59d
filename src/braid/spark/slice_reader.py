"""Reads a stream that is a function of time into Spark's micro-batches.

An offset is a moment of the stream, and what comes before it never changes: any batch can be
read again, by any task, after any failure, so there is nothing to commit. Which streams there
are is in `braid.spark.generator_source`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from braid.model.duration import LONGEST_US
from braid.model.errors import BraidError
from braid.workload.checks import require_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit

TakeBatches: TypeAlias = "Callable[[int, int], Iterator[pa.RecordBatch]]"
"""Gives the rows of a slice `lower_us:upper_us` of a stream."""

MOST_TASKS = 64
"""Tasks of a batch at most; a batch of more slices gives each task several."""


@dataclass(frozen=True, slots=True)
class SlicePace:
    """How much of a stream there is, and how fast it comes.

    | option | meaning |
    |---|---|
    | `seconds` | length of the stream; left out, it has no end |
    | `speed` | seconds of the stream per second of the clock; left out, all is there at once |
    | `sliceSeconds` | seconds of the stream per task, 1 if left out |
    | `maxSlicesPerTrigger` | the most slices of a micro-batch; left out, all there are |
    """

    end_us: int | None
    speed: float | None
    slice_us: int
    slices_per_batch: int | None

    @classmethod
    def read(cls, options: Mapping[str, str]) -> SlicePace:
        """Read the options, whatever the case of their names; refuse what makes no stream."""
        seconds = _number(options, "seconds", 0.001, 1e9)
        speed = _number(options, "speed", 1e-6, 1e6)
        if seconds is None and speed is None:
            raise BraidError(
                "option seconds is missing",
                hint="a stream that is there at once needs an end; one with a speed does not",
            )
        return cls(
            None if seconds is None else round(seconds * 1e6),
            speed,
            round(1e6 * (_number(options, "sliceSeconds", 0.001, 1e9) or 1)),
            _whole(options, "maxSlicesPerTrigger", 1, 1e9),
        )


PACE_OPTIONS = ("seconds", "speed", "sliceSeconds", "maxSlicesPerTrigger")


@dataclass(frozen=True, slots=True)
class StreamSlice(InputPartition):
    """What one task reads: `lower_us:upper_us` of the stream."""

    lower_us: int
    upper_us: int


class SliceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says how far the stream has come, and reads any part of it.

    The clock starts with the first question after a start, from the offset that the query had
    reached: a stream with a speed stands still while nobody reads it.
    """

    def __init__(self, pace: SlicePace, take: TakeBatches) -> None:
        """Start no clock yet: in tasks there is none."""
        self._pace = pace
        self._take = take
        self._at_once = pace.speed is None
        self._origin: tuple[int, float] | None = None

    def initialOffset(self) -> dict[str, int]:
        """A stream begins at its first microsecond."""
        return {"us": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """As for files: a slice is to this source what a file is to a folder."""
        most = self._pace.slices_per_batch
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """How far the next batch may read."""
        reached_us = self._reached_us(start["us"])
        if isinstance(limit, ReadMaxFiles):
            reached_us = min(reached_us, start["us"] + limit.max_files * self._pace.slice_us)
        return {"us": max(reached_us, start["us"])}

    def prepareForTriggerAvailableNow(self) -> None:
        """All of the stream is available now, whatever its speed, so it must have an end."""
        if self._pace.end_us is None:
            raise BraidError(
                "a stream without an end is never all available", hint="set the option seconds"
            )
        self._at_once = True

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[StreamSlice]:
        """FillPacer of the batch, cut evenly; the cuts do not matter to the rows."""
        length_us = end["us"] - start["us"]
        slices = ceil(length_us / self._pace.slice_us)
        step_us = self._pace.slice_us * ceil(slices / MOST_TASKS)
        return [
            StreamSlice(lower_us, min(lower_us + step_us, end["us"]))
            for lower_us in range(start["us"], end["us"], step_us or 1)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one slice; runs in a task."""
        assert isinstance(partition, StreamSlice)
        return self._take(partition.lower_us, partition.upper_us)

    def _reached_us(self, start_us: int) -> int:
        end_us = LONGEST_US if self._pace.end_us is None else self._pace.end_us
        if self._at_once:
            return end_us
        if self._origin is None:
            self._origin = (start_us, time.monotonic())
        origin_us, opened_at = self._origin
        passed_seconds = time.monotonic() - opened_at
        return min(end_us, origin_us + int(passed_seconds * 1e6 * (self._pace.speed or 0)))


def check_options(
    options: Mapping[str, str], known: Sequence[str], needed: Sequence[str]
) -> None:
    """Refuse options of other names, and the lack of a needed one."""
    for name in options:
        if name.lower() not in map(str.lower, known):
            raise BraidError(
                f"unknown option {name}", hint=f"the options are {', '.join(known)}"
            )
    for name in needed:
        if name not in options:
            raise BraidError(f"option {name} is missing")


def _whole(options: Mapping[str, str], name: str, lower: float, upper: float) -> int | None:
    value = _number(options, name, lower, upper)
    if value is not None and not value.is_integer():
        raise BraidError(f"option {name} must be a whole number, not {options[name]!r}")
    return None if value is None else int(value)


def _number(options: Mapping[str, str], name: str, lower: float, upper: float) -> float | None:
    if name not in options:
        return None
    try:
        value = float(options[name])
    except ValueError:
        raise BraidError(f"option {name} must be a number, not {options[name]!r}") from None
    require_number(f"option {name}", value, lower, upper)
    return value
