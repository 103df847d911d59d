"""What came of a trial, read from the events of its run."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A change of plan, during the batches `lower:upper` of an outcome's curves.

    If it came between two batches, it is in the time of the second.
    """

    way: str
    new: str
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Curves over the input, and what happened.

    After every batch with rows: rows read so far, results so far, the bytes that each worker
    had in memory, the bytes and rows of all state, and those rows of it that are of joined
    streams. `taken_ms` is the time from the batch before on, so that what is done between two
    batches counts too. Results of the clean-up, and the time that it kept workers busy, are by
    worker. A spill that a full disk refused is none. `all_rows` are all results that there are.
    """

    input_rows: tuple[int, ...]
    output_rows: tuple[int, ...]
    memory_bytes: tuple[tuple[int, ...], ...]
    state_bytes: tuple[int, ...]
    state_rows: tuple[int, ...]
    joined_rows: tuple[int, ...]
    taken_ms: tuple[int, ...]
    changes: tuple[PlanChange, ...]
    spills: int
    relocations: int
    moved_rows: int
    cleanup_rows: tuple[int, ...]
    cleanup_ms: tuple[int, ...]
    all_rows: int

    @property
    def run_time_rows(self) -> int:
        """Results that came before the input ended."""
        return self.output_rows[-1]

    @property
    def all_cleanup_rows(self) -> int:
        """Results that came after it."""
        return sum(self.cleanup_rows)

    @property
    def most_bytes(self) -> int:
        """The most that a worker had in memory."""
        return max(max(each) for each in self.memory_bytes)

    @property
    def batch_rows(self) -> tuple[int, ...]:
        """Results of each batch."""
        return tuple(after - before for before, after in pairwise((0, *self.output_rows)))

    @property
    def silent_batches(self) -> int:
        """Batches without results while the plan was changing."""
        spans = (self.batch_rows[change.lower : change.upper] for change in self.changes)
        return sum(rows == 0 for span in spans for rows in span)

    @classmethod
    def of(cls, events: Sequence[dict[str, Any]], taken_ms: Sequence[int]) -> Outcome:
        """The outcome of a run that has ended, whose batches with rows have taken so long."""
        batches = [event for event in events if event["event"] == "batch"]
        fed = [event for event in batches if event["input_rows"]]
        after = {e["batch"] for e in batches if e["batch"] > fed[-1]["batch"]}
        workers = len(fed[0]["workers"])
        rows, busy_ms = Counter[int](), Counter[int]()
        for event in events:
            if event["event"] == "cleanup" and event["batch"] in after:
                rows[event["worker"]] += event["results"]
        for event in batches:
            for share in event["workers"] if event["batch"] in after else ():
                busy_ms[share["worker"]] += share["busy_ms"]
        moves = [e for e in events if e["event"] == "relocate"]
        assert len(taken_ms) == len(fed), "a time for each batch with rows"
        return cls(
            input_rows=tuple(accumulate(event["input_rows"] for event in fed)),
            output_rows=tuple(
                sum(e["output_rows"] for e in batches if e["batch"] <= event["batch"])
                for event in fed
            ),
            memory_bytes=tuple(
                tuple(share["memory_bytes"] for share in event["workers"]) for event in fed
            ),
            state_bytes=tuple(
                sum(share["memory_bytes"] + share["disk_bytes"] for share in event["workers"])
                for event in fed
            ),
            state_rows=tuple(sum(each["rows"] for each in e["states"]) for e in fed),
            joined_rows=tuple(
                sum(each["rows"] for each in e["states"] if each["state"].startswith("("))
                for e in fed
            ),
            taken_ms=tuple(taken_ms),
            changes=tuple(_changes(events, [event["batch"] for event in fed])),
            spills=sum(e["event"] == "spill" and e["groups"] > 0 for e in events),
            relocations=sum(e["step"] == "reactivate" for e in moves),
            moved_rows=sum(e["rows"] for e in moves if e["step"] == "quiesce"),
            cleanup_rows=tuple(rows[worker] for worker in range(workers)),
            cleanup_ms=tuple(busy_ms[worker] for worker in range(workers)),
            all_rows=sum(event["output_rows"] for event in batches),
        )


def _changes(events: Sequence[dict[str, Any]], fed: list[int]) -> Iterator[PlanChange]:
    """Changes of plan, the last of which may not have ended; `fed` are the batches' numbers."""
    steps = [event for event in events if event["event"] == "migrate"]
    starts = [event for event in steps if event["step"] == "start"]
    ends = [event["batch"] for event in steps if event["step"] == "end"]
    ends += fed[-1:] * (len(starts) - len(ends))
    for start, end in zip(starts, ends, strict=True):
        lower = bisect(fed, start["batch"])
        yield PlanChange(start["way"], start["new"], lower, max(lower + 1, bisect(fed, end)))
