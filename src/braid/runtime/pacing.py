"""A batch is as slow as its slowest worker: so nobody takes more than its share of one.

From how long workers took for their rows of late follows how many each can join in the time of
the others. What is more than that waits in the log, in a buffer of bounded size, and goes with
later batches; if the buffer is full, the sources wait. It is meant for what passes: a burst of
a key, a machine that is busy with something else. What stays is for a strategy to move.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from braid.events import Held

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.join.report import Report
    from braid.state.commit import Commit

_SLACK = 1.2  # of the others' time: less is noise
_LEAST_MS = 20.0  # a batch that is over so soon is not held up by anyone
_NEWEST = 0.3  # the weight of the latest batch in what is usual


@dataclass(slots=True)
class Pacing:
    """How many rows each worker may join in a batch; `buffer_rows` may wait, if not None."""

    buffer_rows: int | None
    _most: dict[int, int] = field(default_factory=dict, init=False)
    _usual_ms: float | None = field(default=None, init=False)
    _waited: dict[int, int] = field(default_factory=dict, init=False)

    def most_rows(self, worker: int) -> int | None:
        """What a worker may join in the next batch, if there is a limit."""
        return self._most.get(worker)

    def is_full(self, commit: Commit) -> bool:
        """Whether the sources must wait for what waits."""
        if self.buffer_rows is None:
            return False
        return sum(map(commit.waiting_rows, range(commit.workers))) > self.buffer_rows

    def after(self, commit: Commit, reports: Sequence[Report]) -> Iterator[Held]:
        """Learn from a batch; who has held rows back, and why."""
        if self.buffer_rows is None:
            return
        for worker in range(commit.workers):
            mine = [report for report in reports if report.worker == worker]
            held = sum(report.held_rows for report in mine)
            waiting = commit.waiting_rows(worker)
            if held or (self._waited.get(worker) and not waiting):
                yield Held(
                    batch=commit.batch,
                    worker=worker,
                    rows=held,
                    waiting_rows=waiting,
                    reason="more than its share" if held else "all that waited has joined",
                    numbers={
                        "most_rows": self._most.get(worker, 0),
                        "usual_ms": self._usual_ms or 0.0,
                    },
                )
            self._waited[worker] = waiting
        self._learn(commit.workers, reports)

    def _learn(self, workers: int, reports: Sequence[Report]) -> None:
        busy_ms, rows = [0.0] * workers, [0] * workers
        for report in reports:
            busy_ms[report.worker] += report.busy_ms
            rows[report.worker] += report.joined_rows
        if not sum(rows):
            return
        middle = sorted(busy_ms)[(workers - 1) // 2]
        before = middle if self._usual_ms is None else self._usual_ms
        self._usual_ms = max(_LEAST_MS, before + _NEWEST * (middle - before))
        self._most = {
            worker: max(1, round(_SLACK * self._usual_ms * rows[worker] / busy_ms[worker]))
            for worker in range(workers)
            if rows[worker] and busy_ms[worker]
        }
