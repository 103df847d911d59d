"""What a worker did in a round, and the state that it leaves if the batch is committed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from braid.record.commit import ResultFile
from braid.record.generation import Generation
from braid.record.move import Waiting
from braid.state.runs import Ladder, SortedRun

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN_FIELDS = (
    "worker",
    "round",
    "host",
    "input_rows",
    "null_key_rows",
    "null_time_rows",
    "out_of_range_time_rows",
    "bad_rows",
    "late_rows",
    "ahead_rows",
    "joined_rows",
    "held_rows",
    "output_rows",
    "busy_ms",
    "rebuilt_runs",
    "displaced_runs",
    "memory_refusal",
)


@dataclass(frozen=True, slots=True)
class Overflowed:
    """An account of it: bytes pushed out, or why not; groups cleaned up; bytes that owe yet.

    `cleaned_results` are the results that the clean-up made.
    """

    spilled_bytes: int = 0
    spilled_groups: int = 0
    refusal: str = ""
    cleaned_groups: int = 0
    cleaned_results: int = 0
    owing_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Loads:
    """A worker's groups of a space: bytes and rows that they have, and what the batch added.

    `results` are those that new rows have made in this space, whatever becomes of them later.
    """

    groups: list[int]
    memory_bytes: list[int]
    disk_bytes: list[int]
    rows: list[int]
    new_rows: list[int]
    results: list[int]


@dataclass(frozen=True, slots=True)
class Edge:
    """One probe of a cascade: how many rows asked, and how many matches came of it."""

    join: int
    origin: int
    state: int
    asked: int
    found: int


@dataclass(frozen=True, slots=True)
class Report:
    """One worker's account of one round; `ladders` are of the states that it inserted into.

    `generations`, `overflowed` and `loads` are of the spaces of this round, `waiting` are the
    rows that wait for it, and `parcels` what was taken out of states, by space and state.
    Memory refused `displaced_runs` for a reason.
    """

    worker: int
    round: int
    host: str
    input_rows: int
    null_key_rows: int
    null_time_rows: int
    late_rows: int
    ahead_rows: int
    joined_rows: int
    held_rows: int
    output_rows: int
    newest_us: tuple[int | None, ...]
    ladders: dict[int, Ladder]
    generations: dict[int, tuple[Generation, ...]]
    overflowed: dict[int, Overflowed]
    waiting: tuple[Waiting, ...]
    parcels: dict[int, dict[int, SortedRun]]
    loads: dict[int, Loads]
    parts: tuple[ResultFile, ...]
    late_parts: tuple[ResultFile, ...]
    edges: tuple[Edge, ...]
    busy_ms: int
    rebuilt_runs: int
    out_of_range_time_rows: int = 0
    bad_rows: int = 0
    displaced_runs: int = 0
    memory_refusal: str = ""

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            **{name: getattr(self, name) for name in _PLAIN_FIELDS},
            "newest_us": list(self.newest_us),
            "ladders": [
                [state, [run.to_json() for run in ladder]]
                for state, ladder in self.ladders.items()
            ],
            "generations": [
                [space, [each.to_json() for each in own]]
                for space, own in self.generations.items()
            ],
            "overflowed": [[space, asdict(each)] for space, each in self.overflowed.items()],
            "waiting": [each.to_json() for each in self.waiting],
            "parcels": [
                [space, [[state, run.to_json()] for state, run in runs.items()]]
                for space, runs in self.parcels.items()
            ],
            "loads": [[space, asdict(each)] for space, each in self.loads.items()],
            "parts": [part.to_json() for part in self.parts],
            "late_parts": [part.to_json() for part in self.late_parts],
            "edges": [[e.join, e.origin, e.state, e.asked, e.found] for e in self.edges],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        """The inverse of `to_json`."""
        return cls(
            **{name: data[name] for name in _PLAIN_FIELDS},
            newest_us=tuple(data["newest_us"]),
            ladders={
                state: tuple(map(SortedRun.from_json, ladder))
                for state, ladder in data["ladders"]
            },
            generations={
                space: tuple(map(Generation.from_json, own))
                for space, own in data["generations"]
            },
            waiting=tuple(map(Waiting.from_json, data["waiting"])),
            parcels={
                space: {state: SortedRun.from_json(run) for state, run in runs}
                for space, runs in data["parcels"]
            },
            loads={space: Loads(**each) for space, each in data["loads"]},
            overflowed={space: Overflowed(**each) for space, each in data["overflowed"]},
            parts=tuple(map(ResultFile.from_json, data["parts"])),
            late_parts=tuple(map(ResultFile.from_json, data["late_parts"])),
            edges=tuple(Edge(*edge) for edge in data["edges"]),
        )


def edge_totals(reports: Iterable[Report]) -> dict[tuple[int, int, int], tuple[int, int]]:
    """How many rows asked and what they found, on all workers, by join, origin and state."""
    totals: dict[tuple[int, int, int], tuple[int, int]] = {}
    for edge in (edge for report in reports for edge in report.edges):
        place = edge.join, edge.origin, edge.state
        asked, found = totals.get(place, (0, 0))
        totals[place] = asked + edge.asked, found + edge.found
    return totals
