"""What a workload looks like: streams, their rates over time, and the partitions' join rates.

The terms are those of paper 001, section 3.1. The *join factor* is the average number of a
stream's tuples with the same join value. The *join rate* `r` is what the factor grows by in
every *tuple range* of `k` tuples. So a stream draws its values from `k / r` of them, the same
ones over and over, and all streams of a workload draw from the same values.

Each partition may have an `r` and a `k` of its own. Both are stated for the stream as a whole:
with `P` partitions, one of them owns `k / (P * r)` values, and its factor grows by `r` with
every `k / P` tuples that *it* receives. With even shares that is every `k` tuples of the
stream; a partition with twice the share grows its factor twice as fast.

Every spec checks itself when made, so a spec at hand is a valid one. How rows are drawn is in
`braid.workload.draw`; reading specs from JSON is in `braid.workload.spec_json`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil

from braid.model.errors import BraidError
from braid.workload.checks import require_name, require_number, require_parts, require_whole

DEFAULT_START_US = 1_704_067_200_000_000
"""2024-01-01 00:00 UTC: a fixed default, as rows must not depend on when they are made."""

MOST_PARTITIONS = 100_000
MOST_SECONDS = 1e9
MOST_VALUES = 10**15


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of time in which a stream keeps one rate and one skew.

    `rate` is in tuples per second; left out, it is the stream's own. `weights` holds one weight
    per entry of the workload's partitions; left out, these keep their own weights.
    """

    seconds: float
    rate: float | None = None
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        require_number("seconds", self.seconds, 0.001, MOST_SECONDS)
        if self.rate is not None:
            require_number("rate", self.rate, 0, 1e9)
        if self.weights is not None:
            require_parts("weights", self.weights, object)
            for weight in self.weights:
                require_number("weights", weight, 0, 1e9)
            if not any(self.weights):
                raise BraidError("weights must not all be zero")


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream: a Poisson process, of constant rate or in phases that repeat for ever."""

    name: str
    rate: float = 1000.0
    phases: tuple[Phase, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        require_name("name", self.name)
        require_number("rate", self.rate, 0, 1e9)
        require_parts("phases", self.phases, Phase)


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """A run of `count` neighbouring partitions that behave alike.

    `weight` is the load of each of them, relative to the partitions of other entries.
    """

    count: int = 1
    join_rate: float = 1.0
    tuple_range: int = 30_000
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        require_whole("count", self.count, 1, MOST_PARTITIONS)
        require_number("join_rate", self.join_rate, 1e-6, 1e9)
        require_whole("tuple_range", self.tuple_range, 1, 10**12)
        require_number("weight", self.weight, 0, 1e9)
        if self.tuple_range / self.join_rate > MOST_VALUES:
            raise BraidError(
                f"tuple_range {self.tuple_range:,} at join_rate {self.join_rate:g} asks for"
                " more join values than a 64-bit key can hold"
            )


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """Streams that join: they share one set of partitions and of join values.

    Partition `p` has the keys with `k % partition_count == p`; entries of `partitions` follow
    one another. `zipf` skews the load further, by `(p + 1) ** -zipf`. A row arrives up to
    `disorder_seconds` later than its `ts`, and rows come in the order of arrival.
    """

    streams: tuple[StreamSpec, ...]
    partitions: tuple[PartitionSpec, ...] = (PartitionSpec(count=300),)
    zipf: float = 0.0
    disorder_seconds: float = 0.0
    pad_bytes: int = 0
    seed: int = 0
    start_us: int = DEFAULT_START_US

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn, and parts that do not fit each other."""
        require_parts("streams", self.streams, StreamSpec)
        require_parts("partitions", self.partitions, PartitionSpec)
        require_number("zipf", self.zipf, 0, 10)
        require_number("disorder_seconds", self.disorder_seconds, 0, 1e6)
        require_whole("pad_bytes", self.pad_bytes, 0, 10_000)
        require_whole("seed", self.seed, 0, 2**64 - 1)
        require_whole("start_us", self.start_us, 0, 2**56)
        self._check_streams()
        self._check_partitions()

    def stream(self, name: str) -> StreamSpec:
        """The stream of that name."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        names = ", ".join(stream.name for stream in self.streams)
        raise BraidError(f"unknown stream {name!r}", hint=f"the workload has {names}")

    @property
    def partition_count(self) -> int:
        """How many partitions there are; `k % partition_count` is the partition of a key."""
        return sum(entry.count for entry in self.partitions)

    @property
    def disorder_us(self) -> int:
        """The longest delay of a row."""
        return round(self.disorder_seconds * 1e6)

    def _check_streams(self) -> None:
        if not self.streams:
            raise BraidError("streams must not be empty")
        name, times = Counter(stream.name for stream in self.streams).most_common(1)[0]
        if times > 1:
            raise BraidError(
                f"streams must have different names: {name!r} occurs {times} times"
            )
        for stream in self.streams:
            for number, phase in enumerate(stream.phases):
                if phase.weights is not None and len(phase.weights) != len(self.partitions):
                    raise BraidError(
                        f"weights of phase {number} of stream {stream.name!r} must be as many"
                        f" as entries of partitions, {len(self.partitions)},"
                        f" not {len(phase.weights)}"
                    )

    def _check_partitions(self) -> None:
        count = self.partition_count
        require_whole("partitions", count, 1, MOST_PARTITIONS)
        if not any(entry.weight for entry in self.partitions):
            raise BraidError("weight must not be zero for all partitions")
        for entry in self.partitions:
            if entry.tuple_range < count * entry.join_rate:
                raise BraidError(
                    f"tuple_range {entry.tuple_range:,} at join_rate {entry.join_rate:g} leaves"
                    f" less than one join value for each of {count:,} partitions",
                    hint=f"take a tuple_range of at least {ceil(count * entry.join_rate):,}",
                )
