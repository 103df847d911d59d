"""What came of a trial, read from the events of its run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Outcome:
    """Curves over the input, and what happened.

    After every batch with rows: rows read so far, results so far, and the bytes that each
    worker had in memory. Results of the clean-up, and the time that it kept workers busy, are
    by worker. `all_rows` are all results that there are.
    """

    input_rows: tuple[int, ...]
    output_rows: tuple[int, ...]
    memory_bytes: tuple[tuple[int, ...], ...]
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

    @classmethod
    def of(cls, events: Sequence[dict[str, Any]]) -> Outcome:
        """The outcome of a run that has ended."""
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
        return cls(
            input_rows=tuple(accumulate(event["input_rows"] for event in fed)),
            output_rows=tuple(
                sum(e["output_rows"] for e in batches if e["batch"] <= event["batch"])
                for event in fed
            ),
            memory_bytes=tuple(
                tuple(share["memory_bytes"] for share in event["workers"]) for event in fed
            ),
            spills=sum(e["event"] == "spill" for e in events),
            relocations=sum(e["step"] == "reactivate" for e in moves),
            moved_rows=sum(e["rows"] for e in moves if e["step"] == "quiesce"),
            cleanup_rows=tuple(rows[worker] for worker in range(workers)),
            cleanup_ms=tuple(busy_ms[worker] for worker in range(workers)),
            all_rows=sum(event["output_rows"] for event in batches),
        )
