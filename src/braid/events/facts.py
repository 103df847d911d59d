"""The events, typed. Field names are the JSON's names, and a contract with every reader."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import ClassVar

_1970 = dt.datetime(1970, 1, 1)


def instant(moment_us: int | None) -> str | None:
    """A time in microseconds since 1970 as UTC, ISO 8601, with milliseconds.

    What lies before the year 1, as a watermark may by its lateness, is shown as its start.

    >>> instant(1_500_000)
    '1970-01-01T00:00:01.500Z'
    """
    if moment_us is None:
        return None
    since_1970 = max(dt.timedelta(milliseconds=moment_us // 1000), dt.datetime.min - _1970)
    moment = _1970 + since_1970
    return moment.isoformat(timespec="milliseconds") + "Z"


@dataclass(frozen=True, slots=True)
class Started:
    """A run began; `batch` is the first that it will evaluate."""

    name: ClassVar = "started"
    query: str
    plan: str
    checkpoint: str
    workers: int
    groups: int
    batch: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """A run continues the work of an earlier one, from the commit of `batch`."""

    name: ClassVar = "recovered"
    batch: int
    state_rows: int
    log_bytes: int
    watermark: str | None


@dataclass(frozen=True, slots=True)
class GapFound:
    """A folder of results, or of late or bad rows, lacks the last batch that was shown there.

    Batches may be moved away by those who use them; or the folder is an older copy, and results
    are lost. `newest` is the last batch that it has, if it has one.
    """

    name: ClassVar = "gap"
    batch: int
    folder: str
    newest: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerShare:
    """One worker's part of a batch."""

    worker: int
    groups: int
    input_rows: int
    output_rows: int
    state_rows: int
    memory_bytes: int
    disk_bytes: int
    busy_ms: int
    rebuilt_runs: int
    host: str
    displaced_runs: int = 0


@dataclass(frozen=True, slots=True)
class StateSize:
    """What is kept of one input of a join, on all workers."""

    state: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ProbeCount:
    """Rows of `origin`, joined so far, asked a state for matches, and found so many."""

    origin: str
    state: str
    asked: int
    found: int


@dataclass(frozen=True, slots=True)
class StreamRate:
    """Rows of a stream in a second of event time, of late; the value of an unknown is null."""

    stream: str
    rows_per_second: float | None
    certainty: str


@dataclass(frozen=True, slots=True)
class PairSelectivity:
    """The part of all pairs of two streams that join, of late: exact, estimated or unknown."""

    stream: str
    other: str
    selectivity: float | None
    certainty: str


@dataclass(frozen=True, slots=True)
class BatchDone:
    """A batch was committed and its results published.

    An `out_of_range_time` is one from June 4253 on, or as long before 1970. To decide about it
    took `decided_ms` after the batch before.
    """

    name: ClassVar = "batch"
    batch: int
    input_rows: int
    late_rows: int
    ahead_rows: int
    null_key_rows: int
    null_time_rows: int
    output_rows: int
    elapsed_ms: int
    watermark: str | None
    workers: tuple[WorkerShare, ...]
    out_of_range_time_rows: int = 0
    bad_rows: int = 0
    states: tuple[StateSize, ...] = ()
    probes: tuple[ProbeCount, ...] = ()
    rates: tuple[StreamRate, ...] = ()
    selectivities: tuple[PairSelectivity, ...] = ()
    decided_ms: int = 0

    @property
    def dropped_rows(self) -> int:
        """Rows that came too late or from too far ahead, are bad, or can never join."""
        nulls = self.null_key_rows + self.null_time_rows
        others = self.out_of_range_time_rows + self.bad_rows
        return self.late_rows + self.ahead_rows + nulls + others

    @property
    def state_rows(self) -> int:
        """Rows in all workers' state."""
        return sum(share.state_rows for share in self.workers)

    @property
    def state_bytes(self) -> int:
        """Bytes of all workers' state, in memory and on disk."""
        return sum(share.memory_bytes + share.disk_bytes for share in self.workers)


@dataclass(frozen=True, slots=True)
class BatchRetried:
    """A batch failed half way, as when a process dies, and is evaluated anew."""

    name: ClassVar = "retried"
    batch: int
    reason: str


@dataclass(frozen=True, slots=True)
class ClockPutBack:
    """The driver's clock was too far ahead when the batch before this one began.

    Rows are too far ahead of what it says now.
    """

    name: ClassVar = "clock"
    batch: int
    before: str | None
    now: str | None


@dataclass(frozen=True, slots=True)
class FileAwaited:
    """A file that is not complete holds up the files of its stream behind it."""

    name: ClassVar = "awaited"
    stream: str
    file: str


@dataclass(frozen=True, slots=True)
class Spilled:
    """A worker pushed groups of a space out of its memory, or could not: `groups` is 0 then.

    `numbers` are those that led to the decision.
    """

    name: ClassVar = "spill"
    batch: int
    worker: int
    space: int
    groups: int
    bytes: int
    reason: str
    numbers: dict[str, float]


@dataclass(frozen=True, slots=True)
class Displaced:
    """The memory of a host refused state, which is kept on disk; told once for each host.

    A batch's `displaced_runs` count what was refused in it.
    """

    name: ClassVar = "displaced"
    batch: int
    host: str
    runs: int
    reason: str


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """A worker made results that groups on disk owed; `owing_bytes` have others there yet."""

    name: ClassVar = "cleanup"
    batch: int
    worker: int
    space: int
    groups: int
    results: int
    owing_bytes: int


@dataclass(frozen=True, slots=True)
class Relocated:
    """A move of groups from one worker to another has come to a step of its protocol.

    `rows` and `bytes` are what was taken out, or has arrived; `numbers` led to the decision.
    """

    name: ClassVar = "relocate"
    batch: int
    step: str
    sender: int
    receiver: int
    space: int
    groups: int
    rows: int
    bytes: int
    reason: str
    numbers: dict[str, float]


@dataclass(frozen=True, slots=True)
class Replanned:
    """It was time to look for a better plan: `new` is one worth a change, if there is any.

    It is about all workers, or some that decide by themselves. `numbers` have the costs of the
    plan that they have and of the one that was found, by the rates and selectivities that they
    know.
    """

    name: ClassVar = "plan"
    batch: int
    old: str
    new: str | None
    reason: str
    numbers: dict[str, float]
    rates: tuple[StreamRate, ...]
    selectivities: tuple[PairSelectivity, ...]
    workers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Migrated:
    """A change of plan has come to a step: `start`, `fill`, `end`, `refused` or `given up`.

    It is of all workers, or of some. `numbers` tell how many states do not go over, what each
    way would cost in seconds of a core and how long it would last, what both plans cost in
    cores and in rows of state by what was measured, and how many groups are complete.
    """

    name: ClassVar = "migrate"
    batch: int
    step: str
    way: str
    old: str
    new: str
    reason: str
    numbers: dict[str, float]
    workers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RowsHeld:
    """A worker had more rows than its share of a batch, and `rows` of them wait; or none now.

    `numbers` are how many it could have joined in the time that batches usually take.
    """

    name: ClassVar = "hold"
    batch: int
    worker: int
    rows: int
    waiting_rows: int
    reason: str
    numbers: dict[str, float]


@dataclass(frozen=True, slots=True)
class Refused:
    """A strategy proposed what is not safe, and it was not done."""

    name: ClassVar = "refused"
    batch: int
    proposal: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """An error ended a run; `batch` is the last one that was done, in this run or before."""

    name: ClassVar = "failed"
    batch: int | None
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A run ended: its input was used up, it was stopped, or an error ended it."""

    name: ClassVar = "finished"
    reason: str
    batches: int
    input_rows: int
    output_rows: int
    elapsed_ms: int


@dataclass(frozen=True, slots=True)
class EventsMissed:
    """A subscriber was too slow: so many events before this one were dropped for it."""

    name: ClassVar = "missed"
    events: int


Event = (
    Started
    | Recovered
    | GapFound
    | BatchDone
    | BatchRetried
    | ClockPutBack
    | FileAwaited
    | Failed
    | Spilled
    | Displaced
    | CleanedUp
    | Relocated
    | Migrated
    | Replanned
    | RowsHeld
    | Refused
    | Finished
    | EventsMissed
)
