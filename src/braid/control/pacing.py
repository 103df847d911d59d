"""A batch is as slow as its slowest worker: so nobody takes more than its share of one.

From how long workers took for their rows and results of late follows how much each can join
without making a batch much longer than the others would. What is more than that waits in the
log, in a buffer of bounded size, and goes with later batches; if the buffer is full, the
sources wait. Rows of groups that make the most of it wait first. It is meant for what passes: a
burst of a key, a machine that is busy elsewhere. What stays is for a strategy to move.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

from braid.control.decider import Decided
from braid.events import RowsHeld
from braid.record.worker_orders import RECEIVED, Share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from braid.control.decider import BatchSeen
    from braid.record.commit import Commit
    from braid.record.report import Report

_EXTRA = 0.15  # of a batch's usual time: so much longer it may take for one worker's sake
_NEWEST = 0.3  # the weight of the latest batch in what is usual
_RESULT = 0.2  # what it takes to make a result, of what it takes to join a row
_HEAVY = 4.0  # times what a row usually counts


@dataclass(frozen=True, slots=True)
class _Usual:
    """What a batch with new rows takes of late, all in all and in one worker of the middle."""

    busy_ms: float | None = None
    batch_ms: float = 0.0

    @property
    def most_ms(self) -> float:
        """How long a worker may be busy in a batch."""
        return (self.busy_ms or 0.0) + _EXTRA * self.batch_ms

    def after(self, busy_ms: Sequence[float], elapsed_ms: float) -> _Usual:
        """One batch more; what it took for the sake of a late worker is not usual."""
        middle = sorted(busy_ms)[(len(busy_ms) - 1) // 2]
        without = elapsed_ms - (max(busy_ms) - middle)
        if self.busy_ms is None:
            return _Usual(middle, without)
        return _Usual(
            self.busy_ms + _NEWEST * (middle - self.busy_ms),
            self.batch_ms + _NEWEST * (without - self.batch_ms),
        )


@dataclass(frozen=True, slots=True)
class Pacing:
    """How much each worker may join in a batch; `buffer_rows` may wait, if not None."""

    buffer_rows: int | None
    shares: Mapping[int, Share] = field(default_factory=dict)
    usual: _Usual = field(default=_Usual())
    waited: Mapping[int, int] = field(default_factory=dict)

    def share(self, worker: int) -> Share | None:
        """What a worker may join in the next batch, if there is a limit."""
        return self.shares.get(worker)

    def is_full(self, commit: Commit) -> bool:
        """Whether the sources must wait for what waits."""
        if self.buffer_rows is None:
            return False
        return sum(map(commit.waiting_rows, range(commit.workers))) > self.buffer_rows

    def observe(self, seen: BatchSeen) -> Decided[Pacing]:
        """Learn from a batch; tell who has held rows back, and why."""
        if self.buffer_rows is None:
            return Decided(self)
        events = tuple(self._told(seen))
        waiting = {w: seen.after.waiting_rows(w) for w in range(seen.after.workers)}
        return Decided(replace(self._learned(seen), waited=waiting), events=events)

    def _told(self, seen: BatchSeen) -> Iterator[RowsHeld]:
        for worker in range(seen.after.workers):
            held = sum(report.held_rows for report in seen.of_worker(worker))
            waiting = seen.after.waiting_rows(worker)
            if held or (self.waited.get(worker) and not waiting):
                share = self.share(worker)
                yield RowsHeld(
                    batch=seen.batch,
                    worker=worker,
                    rows=held,
                    waiting_rows=waiting,
                    reason="more than its share" if held else "all that waited has joined",
                    numbers={
                        "share": 0.0 if share is None else share.most,
                        "most_ms": self.usual.most_ms,
                    },
                )

    def _learned(self, seen: BatchSeen) -> Pacing:
        workers = seen.after.workers
        busy_ms = [0.0] * workers
        done: list[_WorkDone] = [_WorkDone() for _ in range(workers)]
        for report in seen.reports:
            busy_ms[report.worker] += report.busy_ms
            done[report.worker].add(report)
        usual = self.usual
        if seen.input_rows:
            usual = usual.after(busy_ms, seen.elapsed_ms)
        shares = {
            worker: done[worker].share(usual.most_ms / max(1.0, busy_ms[worker]))
            for worker in range(workers)
            if done[worker].rows
            and (busy_ms[worker] > usual.most_ms or seen.after.waiting_rows(worker))
        }
        return replace(self, usual=usual, shares=shares)


@dataclass(slots=True)
class _WorkDone:
    """The rows that a worker received and joined in a batch, and what it made of them."""

    rows: int = 0
    work: float = 0.0
    by_group: dict[int, dict[int, float]] = field(default_factory=dict)

    def add(self, report: Report) -> None:
        """One round's."""
        self.rows += report.joined_rows
        self.work += report.joined_rows + RECEIVED * report.input_rows
        for space, loads in report.loads.items():
            self.work += _RESULT * sum(loads.results)
            counts = zip(loads.groups, loads.new_rows, loads.results, strict=True)
            self.by_group[space] = {
                group: 1 + _RESULT * results / rows for group, rows, results in counts if rows
            }

    def share(self, part: float) -> Share:
        """So large a part of all that, rows of some groups counting more than most do."""
        rates = [rate for groups in self.by_group.values() for rate in groups.values()]
        usual = median(rates) if rates else 1.0
        heavy = {
            space: {group: rate for group, rate in groups.items() if rate > _HEAVY * usual}
            for space, groups in self.by_group.items()
        }
        return Share(part * self.work, usual, heavy)
