"""What the workers are told about a batch: to each, what it needs and no more.

A cluster of several machines writes the orders of each worker into a file, which its tasks read
when they run. So the job itself can be planned while the batches ahead of it still run, when
none of this is known. The files are of no use to anyone after the batch, and are not part of
what recovery reads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.record.change import Change
from braid.record.closing import earliest_pending_us
from braid.record.generation import Generation
from braid.record.move import Waiting
from braid.record.worker_orders import WorkerOrders
from braid.state.files import write_whole
from braid.state.groups import ranges_of
from braid.state.runs import SortedRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from braid.record.move import Move
    from braid.state.groups import Ranges
    from braid.state.runs import Ladder


@dataclass(frozen=True, slots=True)
class Orders:
    """The state to start from, what to do about it, and where results and late rows go."""

    commit: Commit  # of the batch before
    worker_orders: tuple[WorkerOrders, ...]  # by worker
    finalize_up_to_us: int | None
    results: Path
    late: Path | None
    bad: Path | None = None  # for rows that no expression can be computed for
    ahead_after_us: int | None = None

    def of_workers(self, plan: JoinPlan) -> Iterator[TaskOrders]:
        """What each worker needs of all that, in the order of their numbers."""
        commit = self.commit
        rounds = range(len(plan.rounds.rounds))
        pending_us = tuple(earliest_pending_us(plan, commit, number) for number in rounds)
        owes = commit.owes or any(commit.generations)
        paused = _ranges(commit.moves)
        for worker, own in enumerate(self.worker_orders):
            leaving = (m for m in commit.moves if m.runs is None and m.sender == worker)
            spaces = range(len(commit.assignments))
            yield TaskOrders(
                batch=commit.batch + 1,
                watermark_us=commit.watermark_us,
                newest_us=commit.newest_us,
                pending_us=pending_us,
                purged_us=commit.purged_us,
                closed_us=commit.closed_us,
                finalize_up_to_us=self.finalize_up_to_us,
                ahead_after_us=self.ahead_after_us,
                ladders=commit.ladders[worker],
                generations=commit.generations[worker],
                waiting=commit.waiting[worker],
                owned=tuple(ranges_of(commit.owned(space, worker)) for space in spaces),
                paused=paused,
                leaving=_ranges(leaving),
                owes=owes,
                change=commit.change,
                files=frozenset(commit.files(worker)),
                own=own,
                results=self.results,
                late=self.late,
            )


@dataclass(frozen=True, slots=True)
class TaskOrders:
    """What one worker needs to know of a batch.

    By round, no row comes from below `pending_us` any more, and those that none above
    `purged_us` can reach are gone. By space, `owned` are the worker's groups, `paused` those
    whose rows must wait, `leaving` those to be taken out of the states. If something `owes`
    results, on whichever worker, all are purged later. `files` are to be kept.
    """

    batch: int
    watermark_us: int | None
    newest_us: tuple[int | None, ...]
    pending_us: tuple[int | None, ...]
    purged_us: tuple[int | None, ...]
    closed_us: int | None
    finalize_up_to_us: int | None
    ahead_after_us: int | None
    ladders: tuple[Ladder, ...]
    generations: tuple[Generation, ...]
    waiting: tuple[Waiting, ...]
    owned: tuple[Ranges, ...]
    paused: Mapping[int, Ranges]
    leaving: Mapping[int, Ranges]
    owes: bool
    change: Change | None
    files: frozenset[str]
    own: WorkerOrders
    results: Path
    late: Path | None

    def write(self, path: Path) -> None:
        """Let the worker know."""
        write_whole(path, json.dumps(self.to_json()).encode(), durable=False)

    @classmethod
    def read(cls, path: Path) -> TaskOrders:
        """What was written."""
        return cls.from_json(json.loads(path.read_bytes()))

    def to_json(self) -> dict[str, Any]:
        """The orders as a JSON object."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "ladders": [[run.to_json() for run in ladder] for ladder in self.ladders],
            "generations": [each.to_json() for each in self.generations],
            "waiting": [each.to_json() for each in self.waiting],
            "paused": list(self.paused.items()),
            "leaving": list(self.leaving.items()),
            "change": None if self.change is None else self.change.to_json(),
            "files": sorted(self.files),
            "own": self.own.to_json(),
            "results": str(self.results),
            "late": None if self.late is None else str(self.late),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TaskOrders:
        """The inverse of `to_json`."""
        plain = {name: data[name] for name in _PLAIN}
        for name in ("newest_us", "pending_us", "purged_us"):
            plain[name] = tuple(plain[name])
        return cls(
            **plain | {"owned": tuple(map(_pairs, data["owned"]))},
            ladders=tuple(tuple(map(SortedRun.from_json, each)) for each in data["ladders"]),
            generations=tuple(map(Generation.from_json, data["generations"])),
            waiting=tuple(map(Waiting.from_json, data["waiting"])),
            paused={space: _pairs(ranges) for space, ranges in data["paused"]},
            leaving={space: _pairs(ranges) for space, ranges in data["leaving"]},
            change=None if data["change"] is None else Change.from_json(data["change"]),
            files=frozenset(data["files"]),
            own=WorkerOrders.from_json(data["own"]),
            results=Path(data["results"]),
            late=None if data["late"] is None else Path(data["late"]),
        )


_PLAIN = (
    "batch",
    "watermark_us",
    "newest_us",
    "pending_us",
    "purged_us",
    "closed_us",
    "finalize_up_to_us",
    "ahead_after_us",
    "owned",
    "owes",
)
"""Fields that JSON takes as they are."""


def _pairs(ranges: Iterable[Iterable[int]]) -> Ranges:
    return tuple((first, end) for first, end in ranges)


def _ranges(moves: Iterable[Move]) -> dict[int, Ranges]:
    """The groups that move, by space."""
    found: dict[int, Ranges] = {}
    for move in moves:
        found[move.space] = (*found.get(move.space, ()), *move.ranges)
    return found
