"""The commit record: all that must be known to go on after a batch, and nothing else.

It is one JSON object, checked by its checksum and written by one rename. What it does not name
does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from braid.state.generation import Generation
from braid.state.runs import Ladder, Run, Section, ranges_of, sections_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

BEFORE_FIRST = -1
"""The batch number of the record that a new checkpoint starts with."""


@dataclass(frozen=True, slots=True)
class Part:
    """A finished file of results, to be published; `file` is below the batch's folder."""

    file: str
    rows: int
    length: int
    checksum: str

    def to_json(self) -> list[Any]:
        """The part as a JSON array."""
        return [self.file, self.rows, self.length, self.checksum]


@dataclass(frozen=True, slots=True)
class Commit:
    """What a batch left behind.

    Moments up to `closed_us` have been dealt with, in a query that waits for moments to be
    complete: rows for them come too late. Rows from before the horizon under `purged_us` are
    gone from the states of a round. `source_batch` is the number of the last batch that
    Spark brought; our own run ahead of it, for we have batches without rows too.

    `staged` is the folder that the workers wrote `parts` into; publishing them is the one thing
    still to be done after a commit. `position` is that of the list of files read; None
    where Spark reads the sources.
    """

    batch: int
    watermark_us: int | None
    newest_us: tuple[int | None, ...]  # by stream
    assignments: tuple[tuple[int, ...], ...]  # by space, by group: its worker
    ladders: tuple[tuple[Ladder, ...], ...]  # by worker, by state
    generations: tuple[tuple[Generation, ...], ...]  # by worker, oldest first
    purged_us: tuple[int | None, ...]  # by round
    closed_us: int | None = None
    staged: str = ""
    parts: tuple[Part, ...] = ()
    late_staged: str = ""
    late_parts: tuple[Part, ...] = ()
    position: dict[str, Any] | None = None
    source_batch: int = BEFORE_FIRST

    @property
    def workers(self) -> int:
        """How many workers shared the state."""
        return len(self.ladders)

    @property
    def state_rows(self) -> int:
        """Rows in all workers' state."""
        return sum(run.rows for worker in range(self.workers) for run in self.runs(worker))

    @property
    def owes(self) -> bool:
        """Whether results are yet to be made of rows that are all there."""
        return any(generation.owes for own in self.generations for generation in own)

    def runs(self, worker: int) -> Iterator[Run]:
        """All runs of a worker."""
        for ladder in self.ladders[worker]:
            yield from ladder
        for generation in self.generations[worker]:
            yield from generation.runs.values()

    def bytes_in(self, tier: str, worker: int) -> int:
        """What a worker's files take in a tier."""
        return sum(run.length for run in self.runs(worker) if run.tier == tier)

    def sections(self) -> set[Section]:
        """The log sections that recovery would read."""
        return sections_of([tuple(self.runs(worker)) for worker in range(self.workers)])

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "batch": self.batch,
            "watermark_us": self.watermark_us,
            "newest_us": list(self.newest_us),
            "assignments": [list(assignment) for assignment in self.assignments],
            "closed_us": self.closed_us,
            "ladders": [
                [[run.to_json() for run in ladder] for ladder in worker]
                for worker in self.ladders
            ],
            "generations": [[each.to_json() for each in own] for own in self.generations],
            "purged_us": list(self.purged_us),
            "staged": self.staged,
            "parts": [part.to_json() for part in self.parts],
            "late_staged": self.late_staged,
            "late_parts": [part.to_json() for part in self.late_parts],
            "position": self.position,
            "source_batch": self.source_batch,
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
            ladders=tuple(
                tuple(tuple(Run.from_json(run) for run in ladder) for ladder in worker)
                for worker in data["ladders"]
            ),
            generations=tuple(
                tuple(Generation.from_json(each) for each in own) for own in data["generations"]
            ),
            purged_us=tuple(data["purged_us"]),
            staged=data["staged"],
            parts=tuple(Part(*part) for part in data["parts"]),
            late_staged=data["late_staged"],
            late_parts=tuple(Part(*part) for part in data["late_parts"]),
            position=data["position"],
            source_batch=data["source_batch"],
        )


def first_commit(
    streams: int, spaces: int, states: int, rounds: int, groups: int, workers: int
) -> Commit:
    """The record before the first batch: no state, and equal shares of all spaces' groups."""
    return Commit(
        batch=BEFORE_FIRST,
        watermark_us=None,
        newest_us=(None,) * streams,
        assignments=(equal_shares(groups, workers),) * spaces,
        ladders=(((),) * states,) * workers,
        generations=((),) * workers,
        purged_us=(None,) * rounds,
    )


def equal_shares(groups: int, workers: int) -> tuple[int, ...]:
    """Each worker a contiguous range of the groups."""
    return tuple(group * workers // groups for group in range(groups))


def reshared(commit: Commit, spaces: Sequence[int], workers: int) -> Commit:
    """The same state for another number of workers; `spaces` are those of the states.

    Every worker gets a copy of every run, without a file: it is made from the log when first
    opened, and then holds only the rows of the worker's own groups.
    """
    if workers == commit.workers:
        return commit
    assignments = tuple(equal_shares(len(each), workers) for each in commit.assignments)
    return replace(
        commit,
        assignments=assignments,
        ladders=(tuple(_pooled(commit, s, space) for s, space in enumerate(spaces)),) * workers,
        generations=tuple(
            tuple(_reshared_generations(commit, assignments, worker))
            for worker in range(workers)
        ),
    )


def _reshared_generations(
    commit: Commit, assignments: Sequence[Sequence[int]], worker: int
) -> Iterator[Generation]:
    """What of all generations becomes a worker's, oldest first; without files, like runs."""
    all_of_them = (each for of_one in commit.generations for each in of_one)
    for each in sorted(all_of_them, key=lambda each: each.born):
        owned = np.array(assignments[each.space]) == worker
        mine = each.marks(len(owned)) & owned
        if mine.any():
            runs = {
                state: replace(run, file=f"{run.file}-{worker}")
                for state, run in each.runs.items()
            }
            yield replace(each, groups=ranges_of(mine), runs=runs)


def _pooled(commit: Commit, state: int, space: int) -> Ladder:
    """One state's runs of all workers, oldest first.

    After an earlier change of workers several of them share a section, each for its own groups.
    Their runs become one, or the section's rows would come back once for each.
    """
    counting = _counting(commit, state, space)
    pools: list[tuple[set[Section], list[Run]]] = []
    for run in (run for ladders in commit.ladders for run in ladders[state]):
        sections, runs = {_bare(section) for section in run.backing}, [run]
        for kin in [pool for pool in pools if pool[0] & sections]:
            pools.remove(kin)
            sections, runs = sections | kin[0], kin[1] + runs
        pools.append((sections, runs))
    whole = (_as_one(runs, counting) for _, runs in pools)
    return tuple(sorted((run for run in whole if run.backing), key=lambda run: run.oldest_us))


def _counting(commit: Commit, state: int, space: int) -> dict[Section, NDArray[np.bool_]]:
    """For each section the groups whose rows in it count: their owner has it, and with them."""
    counting: dict[Section, NDArray[np.bool_]] = {}
    for worker, ladders in enumerate(commit.ladders):
        owned = np.array(commit.assignments[space]) == worker
        for section in sections_of([ladders[state]]):
            mine = section.counting(owned)
            counting[_bare(section)] = counting.get(_bare(section), False) | mine
    return counting


def _as_one(runs: Sequence[Run], counting: Mapping[Section, NDArray[np.bool_]]) -> Run:
    """A run without a file in place of several."""
    sections = dict.fromkeys(_bare(section) for run in runs for section in run.backing)
    return Run(
        file=runs[0].file,
        tier="",
        length=0,
        checksum="",
        rows=sum(run.rows for run in runs),
        oldest_us=min(run.oldest_us for run in runs),
        newest_us=max(run.newest_us for run in runs),
        backing=tuple(
            replace(section, without=ranges_of(~counting[section]))
            for section in sections
            if counting[section].any()
        ),
    )


def _bare(section: Section) -> Section:
    """The section's bytes, whoever's rows in them count."""
    return replace(section, without=())
