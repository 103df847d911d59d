"""What a worker does in a round for want of memory: push groups out, and settle what they owe.

Where results may be deferred, a group's rows on disk are a generation of their own, which new
rows do not probe. A group is cleaned up, at the latest, before a row is purged that still owes
something: when rows in memory get out of reach, or all of a generation has. So purging lags
behind the watermark by a batch, for rows that are about to be purged must still be seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from braid.model.errors import StorageFull
from braid.model.failpoints import reach
from braid.record.generation import Generation
from braid.record.report import Loads, Overflowed
from braid.state.groups import group_counts, group_of, marked, ranges_of
from braid.state.horizon import Horizon, alive
from braid.state.runs import hashes_of, of_groups
from braid.state.store import DISK, MEMORY, log_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from braid.state.runs import Section
    from braid.state.store import OpenRun
    from braid.worker.held import WorkerStates

    Groups = NDArray[np.bool_]
    Counts = NDArray[np.int64]
    Weights = NDArray[np.float64]


class GroupSpiller:
    """The groups of one space that a worker has, in memory and on disk.

    `kept` are the states that it may put on disk, `states` those of them that are joined.
    """

    def __init__(self, held: WorkerStates, space: int) -> None:
        """Look at what the last commit left."""
        self.held, self.space, self.step = held, space, held.step
        self.plan, self.store = held.plan, held.stores[space]
        self.groups = self.plan.groups
        self.upkeep = held.upkeeps[space]
        rounds = self.plan.rounds
        self.kept = [
            state
            for state in self.plan.states_of(space)
            if rounds.round_of_state(state) == self.step.round
            and not rounds.states[state].waits
        ]
        self.states = [state for state in self.kept if state != rounds.grouped]
        mine = [each for each in self.step.generations if each.space == space]
        self.generations: list[Generation] = mine
        self.account = Overflowed()

    # What is where.

    def _horizon(self, state: int, low_us: int | None) -> Horizon:
        return self.plan.horizon(self.plan.rounds.states[state], low_us)

    @property
    def _on_disk(self) -> Groups:
        marks = np.zeros(self.groups, bool)
        for generation in self.generations:
            marks |= generation.marks(self.groups)
        return marks

    def _open(self, place: int) -> dict[int, pa.RecordBatch]:
        """A generation's rows, by state; files that are gone are made again."""
        found, runs, generation = {}, {}, self.generations[place]
        for state, run in generation.runs.items():
            opened = self.store.open(run, self._horizon(state, generation.watermark_us))
            if opened is not None:
                runs[state] = opened.run
                found[state] = of_groups(opened.rows, generation.marks(self.groups))
        self.generations[place] = replace(generation, runs=runs)
        return found

    def _in_memory(self) -> Counts:
        """How many rows each group has that are probed."""
        counts = np.zeros(self.groups, np.int64)
        for state in self.states:
            for pair in self.held.open(state):
                counts += group_counts(hashes_of(pair.rows), self.groups)
        return counts

    def _owing(self, in_memory: Counts) -> Groups:
        """The groups of which there are rows in two generations or more."""
        generations = np.zeros(self.groups, np.int64)
        for each in self.generations:
            generations += each.marks(self.groups)
        owing: Groups = (generations + (in_memory > 0) > 1) & (generations > 0)
        return owing

    def _debtors(self, in_memory: Counts) -> Groups:
        """The groups that are to be cleaned up some time.

        Where nothing may be deferred, those are all that have a generation by itself.
        """
        return self._owing(in_memory) if self.step.worker_orders.defers else self._on_disk

    # Cleaning up.

    def due(self) -> Groups:
        """The groups to be cleaned up in this batch, because they must or as we are told."""
        due = np.zeros(self.groups, bool)
        if not self.generations:
            return due
        for each in self.generations:
            if all(
                self._horizon(state, self.step.low_us).is_behind(run)
                for state, run in each.runs.items()
            ):
                due |= each.marks(self.groups)
        for state in self.states:
            horizon = self._horizon(state, self.step.low_us)
            for pair in self.held.open(state):
                if not horizon.may_be_past(pair.run, pair.rows):
                    continue
                living = horizon.living(pair.rows)
                if living is not None:
                    due[group_of(hashes_of(pair.rows)[~living], self.groups)] = True
        due &= self._on_disk
        return due | self._asked_for() if self.step.worker_orders.clean_bytes else due

    def _asked_for(self) -> Groups:
        """Groups that owe, as many as have less than the bytes that are asked for."""
        owing = np.flatnonzero(self._debtors(self._in_memory()))
        lengths = np.cumsum(self._disk_bytes()[owing])
        enough = int(np.searchsorted(lengths, self.step.worker_orders.clean_bytes)) + 1
        chosen = np.zeros(self.groups, bool)
        chosen[owing[:enough]] = True
        return chosen

    def _disk_bytes(self) -> Weights:
        """About how many bytes each group has on disk that are not probed."""
        return self._shared_out([each.length for each in self.generations])

    def _disk_rows(self) -> Weights:
        """About how many rows each group has on disk that are not probed."""
        runs = ((run.rows for run in each.runs.values()) for each in self.generations)
        return self._shared_out([sum(rows) for rows in runs])

    def _shared_out(self, amounts: Sequence[int]) -> Weights:
        """An amount of each generation, in equal parts for its groups."""
        total = np.zeros(self.groups)
        for each, amount in zip(self.generations, amounts, strict=True):
            marks = each.marks(self.groups)
            total[marks] += amount / max(1, int(marks.sum()))
        return total

    def parts(self, groups: Groups) -> list[dict[int, list[pa.RecordBatch]]]:
        """Each generation's rows of these groups, by state; those in memory are the last."""
        parts = []
        for place in range(len(self.generations)):
            found = self._open(place)
            rows = {state: of_groups(found[state], groups) for state in found}
            parts.append(
                {s: [rows[s]] if s in rows and rows[s].num_rows else [] for s in self.states}
            )
        memory = {state: self.rows_of(state, groups)[state] for state in self.states}
        return [*parts, memory]

    def settle(
        self, groups: Groups, made: Mapping[int, Sequence[pa.RecordBatch]], results: int
    ) -> None:
        """Make one generation of all that these groups have: in memory, if there is room.

        What has just been `made` of it, for the states of joins above, is part of that; so
        many `results` have been, too.
        """
        rows, backing = self._logged(made)
        for place, each in enumerate(self.generations):
            marks = groups & each.marks(self.groups)
            for state, found in self._open(place).items() if marks.any() else ():
                horizon = self._horizon(state, self.step.low_us)
                rows[state].append(alive(of_groups(found, groups), horizon))
                sections = each.runs[state].backing
                backing[state] += [section.lacking(~marks) for section in sections]
        remaining = (self._without(each, groups) for each in self.generations)
        self.generations = [each for each in remaining if each is not None]
        length = sum(part.nbytes for parts in rows.values() for part in parts)
        try:
            if self.store.has_room(length):
                self._take_in(MEMORY, rows, backing)
            elif self.step.worker_orders.defers:
                self._push_out(groups, rows, backing)
            else:
                self._take_in(DISK, rows, backing)
        except StorageFull:
            self._take_in(MEMORY, rows, backing)
        self.account = replace(
            self.account, cleaned_groups=int(groups.sum()), cleaned_results=results
        )

    def rows_of(self, state: int, groups: Groups) -> dict[int, list[pa.RecordBatch]]:
        """The rows of one state in memory, as a generation that has no others."""
        # By time alone: a joined row of an older record may owe something past its deadline.
        purged = Horizon(self._horizon(state, self.step.purged_us).time_us)
        runs = (of_groups(pair.rows, groups) for pair in self.held.open(state))
        living = (alive(rows, purged) for rows in runs)
        rows = [part for part in living if part.num_rows]
        return {other: rows if other == state else [] for other in self.states}

    def take_in(self, made: Mapping[int, Sequence[pa.RecordBatch]]) -> None:
        """Rows that were made become part of the states that are probed."""
        rows, backing = self._logged(made)
        length = sum(part.nbytes for parts in rows.values() for part in parts)
        self._take_in(MEMORY if self.store.has_room(length) else DISK, rows, backing)

    def _logged(
        self, made: Mapping[int, Sequence[pa.RecordBatch]]
    ) -> tuple[dict[int, list[pa.RecordBatch]], dict[int, list[Section]]]:
        """Of rows that were made, those that matter, and where the log has them."""
        rows, backing = {}, {}
        for state, parts in made.items():
            horizon = self._horizon(state, self.step.low_us)
            living = [alive(part, horizon) for part in parts]
            rows[state] = [part for part in living if part.num_rows]
            backing[state] = [log_rows(self.held.log, part) for part in rows[state]]
        return rows, backing

    def _take_in(
        self,
        tier: str,
        rows: dict[int, list[pa.RecordBatch]],
        backing: dict[int, list[Section]],
    ) -> None:
        """Rows become part of the states that are probed."""
        kept = {s: self.upkeep.keep(rows[s], backing[s], tier) for s in self.states}
        for state, pair in kept.items():
            if pair is not None:
                self.held.opened[state] = [pair, *self.held.open(state)]

    def _without(self, generation: Generation, groups: Groups) -> Generation | None:
        left = generation.marks(self.groups) & ~groups
        if not left.any():
            return None
        runs = {
            state: replace(run, backing=tuple(s.lacking(groups) for s in run.backing))
            for state, run in generation.runs.items()
        }
        return replace(generation, groups=ranges_of(left), runs=runs)

    # Pushing out.

    def spill(self) -> None:
        """Push groups out of memory, as we are told; a full disk leaves them where they are."""
        groups = marked(self.step.worker_orders.spill.get(self.space, ()), self.groups)
        groups &= self.store.ownership.owned
        if not groups.any():
            return
        before = self.memory_bytes()
        try:
            if self.step.worker_orders.defers and self.plan.may_wait(self.space):
                self._push_out(groups, {}, {})
            else:
                for state in self.kept:
                    opened, horizon = self.held.open(state), self.held.horizon(state)
                    self.held.opened[state] = self.upkeep.spill(opened, groups, horizon)
        except StorageFull as full:
            self.account = replace(self.account, refusal=full.message)
            return
        reach("groups pushed out", self.step.batch, round_number=self.step.round)
        self.account = replace(
            self.account,
            spilled_bytes=before - self.memory_bytes(),
            spilled_groups=int(groups.sum()),
        )

    def memory_bytes(self) -> int:
        """What the space's states take in memory."""
        pairs = (pair for state in self.kept for pair in self.held.open(state))
        return sum(pair.run.length for pair in pairs if pair.run.tier == MEMORY)

    def _push_out(
        self,
        groups: Groups,
        rows: dict[int, list[pa.RecordBatch]],
        backing: dict[int, list[Section]],
    ) -> None:
        """A generation of groups' rows in memory, and of some that are on disk already.

        All is written before any state changes, so a full disk changes nothing.
        """
        low_us = self.step.low_us
        opened = {state: self.held.open(state) for state in self.states}
        taken: dict[int, OpenRun] = {}
        for state in self.states:
            parts, sections = self.upkeep.part(
                opened[state], groups, self._horizon(state, low_us)
            )
            kept = self.upkeep.keep(
                [*parts, *rows.get(state, ())], [*sections, *backing.get(state, ())], DISK
            )
            if kept is not None:
                taken[state] = kept
        for state in self.states:
            self.held.opened[state] = self.upkeep.without(opened[state], groups)
        if not taken:
            return
        there = np.zeros(self.groups, bool)
        for kept in taken.values():
            there |= group_counts(hashes_of(kept.rows), self.groups) > 0
        runs = {state: kept.run for state, kept in taken.items()}
        born = Generation(self.space, self.step.batch, ranges_of(there), low_us, runs)
        self.generations = [*self.generations, born]

    def loads(self, arrived: Counts, arrived_bytes: Weights, results: Counts) -> Loads:
        """What each group of ours weighs and does, from the rows and results of this batch."""
        memory, disk = np.zeros(self.groups), self._disk_bytes()
        rows = arrived + self._disk_rows()
        for state in self.kept:
            for pair in self.held.open(state):
                counts = group_counts(hashes_of(pair.rows), self.groups)
                rows += counts
                weights = memory if pair.run.tier == MEMORY else disk
                weights += counts * (pair.run.length / pair.run.rows)
        memory += arrived_bytes
        mine = np.flatnonzero(self.store.ownership.owned)
        columns = (mine, *(each[mine] for each in (memory, disk, rows, arrived, results)))
        return Loads(*(column.astype(np.int64).tolist() for column in columns))

    def finish(self, arrived: Counts) -> Overflowed:
        """The account, once the number of rows that came for each group is known."""
        if self.generations:
            owing = self._debtors(self._in_memory() + arrived)
            owed = int(self._disk_bytes()[owing].sum())
            self.account = replace(self.account, owing_bytes=max(owed, int(owing.any())))
            self.generations = [self._dated(each, owing) for each in self.generations]
        return self.account

    def _dated(self, generation: Generation, owing: Groups) -> Generation:
        """A generation that knows since when it owes anything, if it does."""
        owes = bool((generation.marks(self.groups) & owing).any())
        since = generation.since_us if generation.owes else self.step.low_us
        return replace(generation, owes=owes, since_us=since if owes else None)
