"""Inserting rows into a ladder and keeping it in shape: the decisions of `ladder`, carried out.

Also taking a partition group out of the state and installing it elsewhere, which is how groups
move between workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from braid.state.ladder import SEAL_SECTIONS, merge_from, most_dead, without_expired
from braid.state.order import merge_rows
from braid.state.runs import Ladder, Run, encode, group_of, hashes_of, slice_group, times_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.state.log import LogFile
    from braid.state.store import RunStore


Tidy = Callable[[pa.RecordBatch], pa.RecordBatch]
"""What makes fewer rows of some that merge, without a difference to whoever probes them."""


class OpenRun(NamedTuple):
    """A run with its rows at hand."""

    run: Run
    rows: pa.RecordBatch


def open_ladder(store: RunStore, ladder: Ladder, horizon_us: int | None) -> list[OpenRun]:
    """Map the runs that a row may still reach."""
    found = (store.open(run, horizon_us) for run in without_expired(ladder, horizon_us))
    return [OpenRun(*pair) for pair in found if pair is not None]


@dataclass(slots=True)
class Upkeep:
    """Changes the ladders of one worker in one batch; run files get names from `token`."""

    store: RunStore
    log: LogFile
    token: str
    _made: int = field(default=0, init=False)

    def insert(
        self,
        ladder: Sequence[OpenRun],
        fresh: pa.RecordBatch,
        horizon_us: int | None,
        tidy: Tidy | None = None,
    ) -> Ladder:
        """The ladder with newly arrived, sorted rows, after the upkeep that they make due.

        `tidy` makes fewer rows of those that merge, and leaves them sorted.
        """
        kept = [pair for pair in ladder if without_expired((pair.run,), horizon_us)]
        fresh = alive(fresh, horizon_us)
        if not fresh.num_rows:
            return self._rewrite_dead(kept, horizon_us, tidy)
        data = encode(fresh)
        run = self._describe(fresh, data)
        run = replace(run, backing=(self.log.add(run, data),))
        kept.append(OpenRun(run, fresh))
        first = merge_from(_runs(kept), horizon_us)
        if first is not None:
            return (*_runs(kept[:first]), self._merge(kept[first:], horizon_us, tidy))
        kept[-1] = OpenRun(self.store.write(run, data), fresh)
        return self._rewrite_dead(kept, horizon_us, tidy)

    def _rewrite_dead(
        self, ladder: list[OpenRun], horizon_us: int | None, tidy: Tidy | None
    ) -> Ladder:
        place = most_dead(_runs(ladder), horizon_us)
        if place is None:
            return _runs(ladder)
        lean = self._merge(ladder[place : place + 1], horizon_us, tidy)
        return (*_runs(ladder[:place]), lean, *_runs(ladder[place + 1 :]))

    def _merge(
        self, pairs: Sequence[OpenRun], horizon_us: int | None, tidy: Tidy | None
    ) -> Run:
        """One run in place of several, without their dead rows."""
        living = [alive(pair.rows, horizon_us) for pair in pairs]
        rows = merge_rows([part for part in living if part.num_rows])
        rows = rows if tidy is None else tidy(rows)
        data = encode(rows)
        run = self._describe(rows, data)
        backing = tuple(section for pair in pairs for section in pair.run.backing)
        if len(backing) > SEAL_SECTIONS:
            backing = (self.log.add(run, data),)
        return self.store.write(replace(run, backing=backing), data)

    def _describe(self, rows: pa.RecordBatch, data: pa.Buffer) -> Run:
        self._made += 1
        return self.store.describe(f"{self.token}-{self._made}", rows, data)

    def take_group(
        self, ladder: Sequence[OpenRun], group: int
    ) -> tuple[Ladder, pa.RecordBatch | None]:
        """Take one group's rows out of a stream's state: what is left, and what was taken.

        The log keeps the rows until their sections expire, but marks the group as gone, so
        that making a lost run again does not bring it back.
        """
        groups = self.store.ownership.groups
        left: list[Run] = []
        taken = []
        for run, rows in ladder:
            part = slice_group(rows, group, groups)
            backing = tuple(section.lacking(group) for section in run.backing)
            if not part.num_rows:
                left.append(replace(run, backing=backing))
                continue
            taken.append(part)
            rest = rows.filter(pa.array(group_of(hashes_of(rows), groups) != group))
            if rest.num_rows:
                data = encode(rest)
                lean = replace(self._describe(rest, data), backing=backing)
                left.append(self.store.write(lean, data))
        return tuple(left), merge_rows(taken) if taken else None

    def install_group(self, ladder: Ladder, rows: pa.RecordBatch) -> Ladder:
        """Add the rows of a group that was taken elsewhere, as a run of their own.

        Sections may have the same rows, if they stem from a time of fewer workers; from now on
        only the new section's count.
        """
        groups = np.unique(group_of(hashes_of(rows), self.store.ownership.groups)).tolist()
        data = encode(rows)
        run = self._describe(rows, data)
        run = replace(run, backing=(self.log.add(run, data),))
        others = (
            replace(other, backing=tuple(section.lacking(*groups) for section in other.backing))
            for other in ladder
        )
        # First in the ladder: its rows are old, and must not hold up the merging of new ones.
        return (self.store.write(run, data), *others)


def alive(rows: pa.RecordBatch, horizon_us: int | None) -> pa.RecordBatch:
    """The rows that a future row may still reach."""
    if horizon_us is None:
        return rows
    mask = times_of(rows) >= horizon_us
    return rows if mask.all() else rows.filter(pa.array(mask))


def _runs(ladder: Sequence[OpenRun]) -> Ladder:
    return tuple(pair.run for pair in ladder)
