"""Synthetic streams as a Spark streaming source, `braid_generator`.

    register(spark)
    spark.readStream.format("braid_generator")
        .option("spec", dump_spec(spec)).option("stream", "a").option("seconds", 600).load()

An offset is a moment of the stream, and what arrives before it is a function of the spec: any
batch can be read again, by any task, after any failure, so there is nothing to commit. What
the rows are is defined in `braid.workload`.

| option | meaning |
|---|---|
| `spec` | the workload, as JSON |
| `stream` | which of its streams |
| `seconds` | length of the stream; left out, it has no end |
| `speed` | seconds of the stream per second of the clock; left out, all is there at once |
| `sliceSeconds` | seconds of the stream per task, 1 if left out |
| `maxSlicesPerTrigger` | the most slices of a micro-batch; left out, all there are |
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from braid.model.duration import LONGEST_US
from braid.model.errors import BraidError
from braid.workload import WorkloadSpec, batches, parse_spec
from braid.workload.checks import require_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

OPTIONS = ("spec", "stream", "seconds", "speed", "sliceSeconds", "maxSlicesPerTrigger")

MOST_TASKS = 64
"""Tasks of a batch at most; a batch of more slices gives each task several."""


def register(spark: SparkSession) -> None:
    """Make the format `braid_generator` known to a session."""
    spark.dataSource.register(BraidGenerator)


@dataclass(frozen=True, slots=True)
class GeneratorSettings:
    """The options of the source, checked."""

    spec: WorkloadSpec
    stream: str
    end_us: int | None
    speed: float | None
    slice_us: int
    slices_per_batch: int | None

    @classmethod
    def read(cls, options: Mapping[str, str]) -> GeneratorSettings:
        """Read the options, whatever the case of their names; refuse what makes no stream."""
        _check_names(options)
        spec = parse_spec(options["spec"])
        seconds = _number(options, "seconds", 0.001, 1e9)
        speed = _number(options, "speed", 1e-6, 1e6)
        if seconds is None and speed is None:
            raise BraidError(
                "option seconds is missing",
                hint="a stream that is there at once needs an end; one with a speed does not",
            )
        return cls(
            spec,
            spec.stream(options["stream"]).name,
            None if seconds is None else round(seconds * 1e6),
            speed,
            round(1e6 * (_number(options, "sliceSeconds", 0.001, 1e9) or 1)),
            _whole(options, "maxSlicesPerTrigger", 1, 1e9),
        )


class BraidGenerator(DataSource):
    """The format `braid_generator`."""

    @classmethod
    def name(cls) -> str:
        """The word for `.format(...)`."""
        return "braid_generator"

    def schema(self) -> str:
        """The columns of `braid.workload.schema`, as Spark writes them."""
        padded = GeneratorSettings.read(self.options).spec.pad_bytes > 0
        return "ts TIMESTAMP, k BIGINT, v BIGINT" + ", pad STRING" * padded

    def streamReader(self, schema: StructType) -> GeneratorReader:
        """A reader of the stream; Spark keeps one for planning, and one in each task."""
        return GeneratorReader(GeneratorSettings.read(self.options))


@dataclass(frozen=True, slots=True)
class StreamSlice(InputPartition):
    """What one task reads: `lower_us:upper_us` of the stream."""

    lower_us: int
    upper_us: int


class GeneratorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says how far the stream has come, and reads any part of it.

    The clock starts with the first question after a start, from the offset that the query had
    reached: a stream with a speed stands still while nobody reads it.
    """

    def __init__(self, settings: GeneratorSettings) -> None:
        """Start no clock yet: in tasks there is none."""
        self._settings = settings
        self._at_once = settings.speed is None
        self._origin: tuple[int, float] | None = None

    def initialOffset(self) -> dict[str, int]:
        """A stream begins at its first microsecond."""
        return {"us": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """As for files: a slice is to this source what a file is to a folder."""
        most = self._settings.slices_per_batch
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """How far the next batch may read."""
        reached_us = self._reached_us(start["us"])
        if isinstance(limit, ReadMaxFiles):
            reached_us = min(
                reached_us, start["us"] + limit.max_files * self._settings.slice_us
            )
        return {"us": max(reached_us, start["us"])}

    def prepareForTriggerAvailableNow(self) -> None:
        """All of the stream is available now, whatever its speed, so it must have an end."""
        if self._settings.end_us is None:
            raise BraidError(
                "a stream without an end is never all available", hint="set the option seconds"
            )
        self._at_once = True

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[StreamSlice]:
        """Slices of the batch, cut evenly; the cuts do not matter to the rows."""
        length_us = end["us"] - start["us"]
        slices = ceil(length_us / self._settings.slice_us)
        step_us = self._settings.slice_us * ceil(slices / MOST_TASKS)
        return [
            StreamSlice(lower_us, min(lower_us + step_us, end["us"]))
            for lower_us in range(start["us"], end["us"], step_us or 1)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one slice; runs in a task."""
        assert isinstance(partition, StreamSlice)
        settings = self._settings
        return batches(settings.spec, settings.stream, partition.lower_us, partition.upper_us)

    def _reached_us(self, start_us: int) -> int:
        end_us = LONGEST_US if self._settings.end_us is None else self._settings.end_us
        if self._at_once:
            return end_us
        if self._origin is None:
            self._origin = (start_us, time.monotonic())
        origin_us, opened_at = self._origin
        passed_seconds = time.monotonic() - opened_at
        return min(end_us, origin_us + int(passed_seconds * 1e6 * (self._settings.speed or 0)))


def _check_names(options: Mapping[str, str]) -> None:
    known = [name.lower() for name in OPTIONS]
    for name in options:
        if name.lower() not in known:
            raise BraidError(
                f"unknown option {name}", hint=f"the options are {', '.join(OPTIONS)}"
            )
    for name in ("spec", "stream"):
        if name not in options:
            raise BraidError(f"option {name} is missing")


def _number(options: Mapping[str, str], name: str, lower: float, upper: float) -> float | None:
    if name not in options:
        return None
    try:
        value = float(options[name])
    except ValueError:
        raise BraidError(f"option {name} must be a number, not {options[name]!r}") from None
    require_number(f"option {name}", value, lower, upper)
    return value


def _whole(options: Mapping[str, str], name: str, lower: float, upper: float) -> int | None:
    value = _number(options, name, lower, upper)
    if value is not None and not value.is_integer():
        raise BraidError(f"option {name} must be a whole number, not {options[name]!r}")
    return None if value is None else int(value)
