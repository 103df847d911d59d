"""Chaining matches into m-way results.

A *partial* is a set of half-made results: for each relation joined so far, a reference to one
of its rows. Beside them it carries all that the next step needs: the key hash, the youngest
member time M, and the deadline D = min(ts_i + W_i). Two partials may join if each one's M is at
most the other's D, which is just `max(ts) - ts_i <= W_i` for every member of both.

Invariant: a partial is sorted by key hash, because extending keeps the order of the probes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.evaluator import holds
from braid.model.query import time_column
from braid.plan.keys import equal_keys, key_from_hash
from braid.plan.wire import UNTIL, Layout, as_time
from braid.state.bloom import may_have
from braid.state.runs import Times, hashes_of, times_of
from braid.worker.gather import gather
from braid.worker.kernel import combine_bounds, expand, locate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from braid.model.expression import Column
    from braid.plan.join_plan import JoinPlan
    from braid.plan.rounds import ProbeStep, Relation
    from braid.state.bloom import Words
    from braid.state.groups import Hashes

    Rows = NDArray[np.int64]

MOST_MATCHES = 1 << 21
"""Partials are extended in pieces of about this many rows, which bounds a worker's memory."""


@dataclass(frozen=True, slots=True)
class Guard:
    """The event times of a run, and a filter of its key hashes, if it has one."""

    oldest_us: int
    newest_us: int
    words: Words | None

    def passed(self, hashes: Hashes, oldest: Times, newest: Times) -> NDArray[np.bool_]:
        """Which probes may have a match in the run."""
        passed = (newest >= self.oldest_us) & (oldest <= self.newest_us)
        if self.words is not None and passed.any():
            passed &= may_have(self.words, hashes)
        return passed


@dataclass(frozen=True, slots=True)
class Side:
    """Rows of a relation that may take part: its runs, with this batch's rows or without.

    `guards` are of the first runs: what can be known of one without looking into it.
    """

    relation: Relation
    layout: Layout
    runs: tuple[pa.RecordBatch, ...]
    window_us: int
    guards: tuple[Guard, ...] = ()

    def times(self, rows: Rows) -> Times:
        """The event times at row references."""
        times: Times = self._gathered(1, rows).to_numpy()
        return times

    def deadlines(self, rows: Rows, times: Times) -> Times:
        """The last event times that may still join the rows, whose own times are known."""
        place = self.layout.place(UNTIL)
        if place is None:
            return times + self.window_us
        deadlines: Times = self._gathered(place, rows).to_numpy()
        return deadlines

    def values(
        self, column: Column, rows: Rows, hashes: Hashes, types: Mapping[Column, pa.DataType]
    ) -> pa.Array:
        """A column at row references, whose hashes are known."""
        place = self.layout.place(column)
        if place is not None:
            return self._gathered(place, rows)
        kind = types[column]
        if column in self.layout.recovered:
            return key_from_hash(hashes, kind)
        return as_time(self.times(rows), kind)

    def _gathered(self, place: int, rows: Rows) -> pa.Array:
        return gather([run.column(place) for run in self.runs], rows)


@dataclass(frozen=True, slots=True)
class Partial:
    """Half-made results; see the module's head for the meaning of its columns.

    `rows[i]` are references into the i-th side that was joined.
    """

    rows: tuple[Rows, ...]
    hashes: Hashes
    newest: Times
    deadline: Times

    def __len__(self) -> int:
        """How many results are in the making."""
        return len(self.hashes)

    def piece(self, lower: int, upper: int) -> Partial:
        """A contiguous part."""
        return Partial(
            tuple(rows[lower:upper] for rows in self.rows),
            self.hashes[lower:upper],
            self.newest[lower:upper],
            self.deadline[lower:upper],
        )

    def kept(self, mask: NDArray[np.bool_]) -> Partial:
        """The rows that a mask keeps."""
        if mask.all():
            return self
        return Partial(
            tuple(rows[mask] for rows in self.rows),
            self.hashes[mask],
            self.newest[mask],
            self.deadline[mask],
        )


def start(side: Side) -> Partial:
    """The partial of newly arrived, sorted rows, which are the one run of their side."""
    (arrived,) = side.runs
    rows, times = np.arange(arrived.num_rows, dtype=np.int64), times_of(arrived)
    return Partial((rows,), hashes_of(arrived), times, side.deadlines(rows, times))


@dataclass(frozen=True, slots=True)
class Cascade:
    """Probes of one side after the other; `sides[0]` is where the rows come from.

    `matches` counts, for each step, what it was asked and what it found.
    """

    plan: JoinPlan
    exact: bool
    sides: tuple[Side, ...]
    steps: tuple[ProbeStep, ...]
    asked: list[int] = field(default_factory=list)
    found: list[int] = field(default_factory=list)

    def run(self) -> Iterator[Partial]:
        """All that comes through all steps, in pieces."""
        self.asked[:] = self.found[:] = [0] * len(self.steps)
        yield from self._extend(start(self.sides[0]), 0)

    def values(self, partial: Partial) -> Callable[[Column], pa.Array]:
        """The columns of a partial's members."""

        def fetch(column: Column) -> pa.Array:
            member = next(
                member
                for member, side in enumerate(self.sides[: len(partial.rows)])
                if column.stream in side.relation.streams
            )
            rows, types = partial.rows[member], self.plan.wire.types
            return self.sides[member].values(column, rows, partial.hashes, types)

        return fetch

    def _extend(self, partial: Partial, place: int) -> Iterator[Partial]:
        if not len(partial):
            return
        if place == len(self.steps):
            yield partial
            return
        self.asked[place] += len(partial)
        for piece in self._matches(partial, self.sides[place + 1]):
            kept = self._checked(piece, self.steps[place])
            self.found[place] += len(kept)
            yield from self._extend(kept, place + 1)

    def _matches(self, partial: Partial, side: Side) -> Iterator[Partial]:
        """The partial joined with one more side, in pieces of bounded size."""
        starts, counts = _locate_all(side, partial)
        ends = np.cumsum(counts.sum(axis=0))
        lower = 0
        while lower < len(partial):
            done = ends[lower - 1] if lower else 0
            upper = int(np.searchsorted(ends, done + MOST_MATCHES, "right"))
            upper = max(upper, lower + 1)  # one probe's matches are never split
            if ends[upper - 1] > done:
                of_probe, rows = expand(starts[:, lower:upper], counts[:, lower:upper])
                yield _joined(partial.piece(lower, upper), of_probe, side, rows)
            lower = upper

    def _checked(self, partial: Partial, step: ProbeStep) -> Partial:
        """Without matches that share a hash but not a key, or that fail a condition.

        A match's deadline may lie before its youngest member, where deadlines were stored.
        """
        if self.sides[len(partial.rows) - 1].layout.place(UNTIL) is not None:
            partial = partial.kept(partial.newest <= partial.deadline)
        pairs = (*(() if self.exact else step.key), *step.equal)
        if pairs and len(partial):
            known, found = zip(*pairs, strict=True)
            fetch = self.values(partial)
            partial = partial.kept(equal_keys([*map(fetch, known)], [*map(fetch, found)]))
        for bound in step.bounds:
            fetch = self.values(partial)
            ends = (
                fetch(time_column(self.plan.wire.event_time, stream))
                for stream in (bound.stream, bound.other)
            )
            later, earlier = (
                end.cast(pa.timestamp("us", end.type.tz)).view(pa.int64()) for end in ends
            )
            partial = partial.kept(later.to_numpy() - earlier.to_numpy() <= bound.most_us)
        for condition in step.conditions:
            mask = holds(condition, self.values(partial), len(partial))
            partial = partial.kept(mask)
        return partial


def _locate_all(side: Side, partial: Partial) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the probes' matches are in each run, and how many."""
    oldest = partial.newest - side.window_us
    shape = len(side.runs), len(partial)
    starts, counts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for number, run in enumerate(side.runs):
        columns = hashes_of(run), times_of(run)
        hashes, newest = partial.hashes, partial.deadline
        if number >= len(side.guards) or side.guards[number].words is None:
            locate(*columns, hashes, oldest, newest, starts[number], counts[number])
            continue
        passed = np.flatnonzero(side.guards[number].passed(hashes, oldest, newest))
        if len(passed):
            some = np.empty((2, len(passed)), np.int64)
            locate(*columns, hashes[passed], oldest[passed], newest[passed], *some)
            starts[number, passed], counts[number, passed] = some
    return starts, counts


def _joined(partial: Partial, of_probe: Rows, side: Side, rows: Rows) -> Partial:
    """The matches as a partial of their own."""
    times = side.times(rows)
    bounds = combine_bounds(
        of_probe,
        partial.hashes,
        partial.newest,
        partial.deadline,
        times,
        side.deadlines(rows, times),
    )
    return Partial((*(known[of_probe] for known in partial.rows), rows), *bounds)
