"""The commit record: all that must be known to go on after a batch, and nothing else.

It is one JSON object, checked by its checksum and written by one rename. What it does not name
does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from braid.plan.placement import ByHash
from braid.record.change import Change
from braid.record.generation import Generation
from braid.record.move import Move, Waiting
from braid.state.groups import ranges_of
from braid.state.runs import Ladder, Section, SortedRun, sections_of
from braid.state.trust import checked_path, checked_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from braid.state.groups import Ranges

BEFORE_FIRST = -1
"""The batch number of the record that a new checkpoint starts with."""


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A finished file of results, to be published; `file` is below the batch's folder."""

    file: str
    rows: int
    length: int
    checksum: str

    def to_json(self) -> list[Any]:
        """The part as a JSON array."""
        return [self.file, self.rows, self.length, self.checksum]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> ResultFile:
        """The inverse of `to_json`."""
        file, rows, length, checksum = data
        return cls(checked_path(file), checked_size(rows), checked_size(length), checksum)


@dataclass(frozen=True, slots=True)
class Commit:
    """What a batch left behind.

    Moments up to `closed_us` have been dealt with, in a query that waits for moments to be
    complete: rows for them come too late. Rows from before the horizon under `purged_us` are
    gone from the states of a round. A worker has the groups of its assignment, but for those
    that are on their way to it: the `moves`. `source_batch` is the number of the last batch
    that Spark brought; our own run ahead of it, for we have batches without rows too. The
    `source_checksum` is that of its offsets, which tell its rows; older records have none.
    `clock_us` is what the driver's clock said when the batch began.

    `staged` is the folder that the workers wrote `parts` into; publishing them is the one thing
    still to be done after a commit. `position` is that of the list of files read; None
    where Spark reads the sources. There is one plan of all groups, or `plan_of_group` tells by
    which one each goes; and one more while there is a `change`. `tallies` are counts of every
    group for a strategy to go on with; nothing is joined by them.
    """

    batch: int
    watermark_us: int | None
    newest_us: tuple[int | None, ...]  # by stream
    assignments: tuple[tuple[int, ...], ...]  # by space, by group: its worker
    ladders: tuple[tuple[Ladder, ...], ...]  # by worker, by state
    generations: tuple[tuple[Generation, ...], ...]  # by worker, oldest first
    purged_us: tuple[int | None, ...]  # by round
    waiting: tuple[tuple[Waiting, ...], ...]  # by worker, oldest first
    moves: tuple[Move, ...] = ()
    plans: tuple[str, ...] = ()
    plan_of_group: tuple[int, ...] = ()
    change: Change | None = None
    closed_us: int | None = None
    clock_us: int | None = None
    staged: str = ""
    parts: tuple[ResultFile, ...] = ()
    late_staged: str = ""
    late_parts: tuple[ResultFile, ...] = ()
    bad_staged: str = ""
    bad_parts: tuple[ResultFile, ...] = ()
    position: dict[str, Any] | None = None
    source_batch: int = BEFORE_FIRST
    source_checksum: str = ""
    tallies: tuple[dict[str, Any] | None, ...] = ()  # by space

    @property
    def workers(self) -> int:
        """How many workers shared the state."""
        return len(self.ladders)

    @property
    def state_rows(self) -> int:
        """Rows in all workers' state."""
        return sum(run.rows for worker in range(self.workers) for run in self.runs(worker))

    @property
    def latest_us(self) -> int | None:
        """The latest event time that any stream has come to."""
        return max((moment for moment in self.newest_us if moment is not None), default=None)

    @property
    def owes(self) -> bool:
        """Whether results are yet to be made of rows that are all there."""
        late = any(generation.owes for own in self.generations for generation in own)
        return late or bool(self.moves) or any(self.waiting)

    @property
    def moving(self) -> set[int]:
        """The workers that send or receive groups."""
        return {worker for move in self.moves for worker in (move.sender, move.receiver)}

    @property
    def routes(self) -> tuple[Ranges, ...]:
        """By plan, the groups whose rows go through it; nothing, if all go through all."""
        groups = len(self.assignments[0])
        if not self.plan_of_group and (self.change is None or self.change.groups is None):
            return ()
        own = np.array(self.plan_of_group or (0,) * groups)
        masks = [own == plan for plan in range(len(self.plans))]
        if self.change is not None:
            masks[-1] = self.change.marks(groups)
        return tuple(map(ranges_of, masks))

    def placement(self, space: int) -> ByHash:
        """Which worker has which groups of a space, those included that it is about to get."""
        return ByHash(self.assignments[space])

    @property
    def placements(self) -> tuple[ByHash, ...]:
        """The placement of each space."""
        return tuple(map(ByHash, self.assignments))

    def owned(self, space: int, worker: int) -> NDArray[np.bool_]:
        """The groups whose rows a worker has, or is about to get.

        Those that have not been taken out of its states yet are still its own.
        """
        owned = self.placement(space).of(worker)
        for move in self.moves:
            if move.runs is None and (move.space, move.sender) == (space, worker):
                owned |= move.marks(len(owned))
        return owned

    def runs(self, worker: int) -> Iterator[SortedRun]:
        """All runs of a worker; those that move are their sender's until they have arrived."""
        for ladder in self.ladders[worker]:
            yield from ladder
        for generation in self.generations[worker]:
            yield from generation.runs.values()
        for move in self.moves:
            if move.sender == worker and move.runs is not None:
                yield from move.runs.values()

    def waiting_rows(self, worker: int) -> int:
        """How many rows wait at a worker."""
        return sum(each.section.rows for each in self.waiting[worker])

    def files(self, worker: int) -> set[str]:
        """The names of all files that a worker has or is about to get."""
        arriving = (move for move in self.moves if move.receiver == worker)
        names = {run.file for move in arriving for run in (move.runs or {}).values()}
        return names | {run.file for run in self.runs(worker)}

    def runs_of(self, state: int) -> list[SortedRun]:
        """The runs of a state, on all workers."""
        return [run for own in self.ladders for run in own[state]]

    def bytes_in(self, tier: str, worker: int) -> int:
        """What a worker's files take in a tier; two states may share one."""
        lengths = {run.file: run.length for run in self.runs(worker) if run.tier == tier}
        return sum(lengths.values())

    def sections(self) -> set[Section]:
        """The log sections that recovery would read."""
        needed = sections_of([tuple(self.runs(worker)) for worker in range(self.workers)])
        return needed | {each.section for own in self.waiting for each in own}

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "batch": self.batch,
            "watermark_us": self.watermark_us,
            "newest_us": list(self.newest_us),
            "assignments": [list(assignment) for assignment in self.assignments],
            "closed_us": self.closed_us,
            "clock_us": self.clock_us,
            "ladders": [
                [[run.to_json() for run in ladder] for ladder in worker]
                for worker in self.ladders
            ],
            "generations": [[each.to_json() for each in own] for own in self.generations],
            "purged_us": list(self.purged_us),
            "waiting": [[each.to_json() for each in own] for own in self.waiting],
            "moves": [move.to_json() for move in self.moves],
            "plans": list(self.plans),
            "plan_of_group": list(self.plan_of_group),
            "change": None if self.change is None else self.change.to_json(),
            "staged": self.staged,
            "parts": [part.to_json() for part in self.parts],
            "late_staged": self.late_staged,
            "late_parts": [part.to_json() for part in self.late_parts],
            "bad_staged": self.bad_staged,
            "bad_parts": [part.to_json() for part in self.bad_parts],
            "position": self.position,
            "source_batch": self.source_batch,
            "source_checksum": self.source_checksum,
            "tallies": list(self.tallies),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Commit:
        """The inverse of `to_json`."""
        return cls(
            batch=data["batch"],
            watermark_us=data["watermark_us"],
            newest_us=tuple(data["newest_us"]),
            assignments=tuple(map(tuple, data["assignments"])),
            closed_us=data["closed_us"],
            clock_us=data.get("clock_us"),
            ladders=tuple(
                tuple(tuple(SortedRun.from_json(run) for run in ladder) for ladder in worker)
                for worker in data["ladders"]
            ),
            generations=tuple(
                tuple(Generation.from_json(each) for each in own) for own in data["generations"]
            ),
            purged_us=tuple(data["purged_us"]),
            waiting=tuple(tuple(map(Waiting.from_json, own)) for own in data["waiting"]),
            moves=tuple(map(Move.from_json, data["moves"])),
            plans=tuple(data["plans"]),
            plan_of_group=tuple(data["plan_of_group"]),
            change=None if data["change"] is None else Change.from_json(data["change"]),
            staged=data["staged"],
            parts=tuple(map(ResultFile.from_json, data["parts"])),
            late_staged=data["late_staged"],
            late_parts=tuple(map(ResultFile.from_json, data["late_parts"])),
            bad_staged=data.get("bad_staged", ""),
            bad_parts=tuple(map(ResultFile.from_json, data.get("bad_parts", ()))),
            position=data["position"],
            source_batch=data["source_batch"],
            source_checksum=data.get("source_checksum", ""),
            tallies=tuple(data.get("tallies", ())),  # older records have none
        )


def first_commit(
    streams: int, spaces: int, states: int, rounds: int, groups: int, workers: int
) -> Commit:
    """The record before the first batch: no state, and equal shares of all spaces' groups."""
    return Commit(
        batch=BEFORE_FIRST,
        watermark_us=None,
        newest_us=(None,) * streams,
        assignments=(ByHash.equal_shares(groups, workers).owners,) * spaces,
        ladders=(((),) * states,) * workers,
        generations=((),) * workers,
        purged_us=(None,) * rounds,
        waiting=((),) * workers,
    )


def newer(a: int | None, b: int | None) -> int | None:
    """The later of two times, either of which may not have come yet."""
    if a is None or b is None:
        return a if b is None else b
    return max(a, b)
