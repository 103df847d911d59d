"""A batch is as slow as its slowest worker: so nobody takes more than its share of one.

From how long workers took for their rows and results of late follows how many each can join in
the time of the others. What is more than that waits in the log, in a buffer of bounded size,
and goes with later batches; if the buffer is full, the sources wait. Rows of groups that make
the most of it wait first. It is meant for what passes: a burst of a key, a machine that is busy
with something else. What stays is for a strategy to move.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from braid.events import Held
from braid.join.chores import Share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.join.report import Report
    from braid.state.commit import Commit

_LATE = 1.4  # of the others' time: less is noise
_SLACK = 1.15  # of the others' time: what a worker may take that is late, or has rows waiting
_LEAST_MS = 20.0  # a batch that is over so soon is not held up by anyone
_NEWEST = 0.3  # the weight of the latest batch in what is usual
_HEAVY = 4.0  # times what a row usually counts


@dataclass(slots=True)
class Pacing:
    """How much each worker may join in a batch; `buffer_rows` may wait, if not None."""

    buffer_rows: int | None
    _shares: dict[int, Share] = field(default_factory=dict, init=False)
    _usual_ms: float | None = field(default=None, init=False)
    _waited: dict[int, int] = field(default_factory=dict, init=False)

    def share(self, worker: int) -> Share | None:
        """What a worker may join in the next batch, if there is a limit."""
        return self._shares.get(worker)

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
                share = self._shares.get(worker)
                yield Held(
                    batch=commit.batch,
                    worker=worker,
                    rows=held,
                    waiting_rows=waiting,
                    reason="more than its share" if held else "all that waited has joined",
                    numbers={
                        "share": 0.0 if share is None else share.most,
                        "usual_ms": self._usual_ms or 0.0,
                    },
                )
            self._waited[worker] = waiting
        self._learn(commit, reports)

    def _learn(self, commit: Commit, reports: Sequence[Report]) -> None:
        busy_ms = [0.0] * commit.workers
        done: list[_Done] = [_Done() for _ in range(commit.workers)]
        for report in reports:
            busy_ms[report.worker] += report.busy_ms
            done[report.worker].add(report)
        if not any(each.rows for each in done):
            return
        middle = sorted(busy_ms)[(commit.workers - 1) // 2]
        before = middle if self._usual_ms is None else self._usual_ms
        self._usual_ms = max(_LEAST_MS, before + _NEWEST * (middle - before))
        self._shares = {
            worker: done[worker].share(_SLACK * self._usual_ms / busy_ms[worker])
            for worker in range(commit.workers)
            if done[worker].rows
            and (busy_ms[worker] > _LATE * self._usual_ms or commit.waiting_rows(worker))
        }


@dataclass(slots=True)
class _Done:
    """The rows that a worker joined in a batch, and what it made of them."""

    rows: int = 0
    results: int = 0
    by_group: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)

    def add(self, report: Report) -> None:
        """One round's."""
        self.rows += report.joined_rows
        for space, loads in report.loads.items():
            self.results += sum(loads.results)
            counts = zip(loads.groups, loads.new_rows, loads.results, strict=True)
            self.by_group[space] = {g: (rows, results) for g, rows, results in counts}

    def share(self, part: float) -> Share:
        """So large a part of all that, rows of some groups counting more than others."""
        usual = (self.rows + self.results) / self.rows
        heavy = {
            space: {
                group: (rows + results) / rows
                for group, (rows, results) in groups.items()
                if rows and (rows + results) / rows > _HEAVY * usual
            }
            for space, groups in self.by_group.items()
        }
        return Share(part * (self.rows + self.results), usual, heavy)
