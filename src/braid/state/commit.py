"""The commit record: all that must be known to go on after a batch, and nothing else.

It is one JSON object, checked by its checksum and written by one rename. What it does not name
does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from braid.state.runs import Ladder, Run, Section, sections_of

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    `staged` is the folder that the workers wrote `parts` into; publishing them is the one thing
    still to be done after a commit. `position` is the source's own note of what has been read;
    None where Spark keeps it.
    """

    batch: int
    watermark_us: int | None
    newest_us: tuple[int | None, ...]
    assignment: tuple[int, ...]
    ladders: tuple[tuple[Ladder, ...], ...]  # by worker, by stream
    staged: str = ""
    parts: tuple[Part, ...] = ()
    late_staged: str = ""
    late_parts: tuple[Part, ...] = ()
    position: dict[str, Any] | None = None

    @property
    def workers(self) -> int:
        """How many workers shared the state."""
        return len(self.ladders)

    @property
    def state_rows(self) -> int:
        """Rows in all workers' state."""
        return sum(r.rows for worker in self.ladders for ladder in worker for r in ladder)

    def sections(self) -> set[Section]:
        """The log sections that recovery would read."""
        return sections_of(ladder for worker in self.ladders for ladder in worker)

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "batch": self.batch,
            "watermark_us": self.watermark_us,
            "newest_us": list(self.newest_us),
            "assignment": list(self.assignment),
            "ladders": [
                [[run.to_json() for run in ladder] for ladder in worker]
                for worker in self.ladders
            ],
            "staged": self.staged,
            "parts": [part.to_json() for part in self.parts],
            "late_staged": self.late_staged,
            "late_parts": [part.to_json() for part in self.late_parts],
            "position": self.position,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Commit:
        """The inverse of `to_json`."""
        return cls(
            batch=data["batch"],
            watermark_us=data["watermark_us"],
            newest_us=tuple(data["newest_us"]),
            assignment=tuple(data["assignment"]),
            ladders=tuple(
                tuple(tuple(Run.from_json(run) for run in ladder) for ladder in worker)
                for worker in data["ladders"]
            ),
            staged=data["staged"],
            parts=tuple(Part(*part) for part in data["parts"]),
            late_staged=data["late_staged"],
            late_parts=tuple(Part(*part) for part in data["late_parts"]),
            position=data["position"],
        )


def first_commit(streams: int, groups: int, workers: int) -> Commit:
    """The record before the first batch: no state, and equal shares of the groups."""
    return Commit(
        batch=BEFORE_FIRST,
        watermark_us=None,
        newest_us=(None,) * streams,
        assignment=equal_shares(groups, workers),
        ladders=(((),) * streams,) * workers,
    )


def equal_shares(groups: int, workers: int) -> tuple[int, ...]:
    """Each worker a contiguous range of the groups."""
    return tuple(group * workers // groups for group in range(groups))


def reshared(commit: Commit, workers: int) -> Commit:
    """The same state for another number of workers.

    Every worker gets a copy of every run, without a file: it is made from the log when first
    opened, and then holds only the rows of the worker's own groups.
    """
    if workers == commit.workers:
        return commit
    return replace(
        commit,
        assignment=equal_shares(len(commit.assignment), workers),
        ladders=(_pooled(commit.ladders),) * workers,
    )


def _pooled(ladders: Sequence[Sequence[Ladder]]) -> tuple[Ladder, ...]:
    """By stream, the runs of all workers, oldest first."""
    return tuple(
        tuple(sorted((r for ladder in per_worker for r in ladder), key=lambda r: r.oldest_us))
        for per_worker in zip(*ladders, strict=True)
    )
