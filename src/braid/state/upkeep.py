"""Inserting rows into a ladder and keeping it in shape: the decisions of `ladder`, carried out.

Also taking partition groups out of a state, which is how they get to disk or to other workers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.model.errors import StorageFull
from braid.state.horizon import alive
from braid.state.ladder import SEAL_SECTIONS, merge_from, most_dead, without_expired
from braid.state.order import merge_rows
from braid.state.runs import Ladder, Section, SortedRun, encode, of_groups
from braid.state.store import DISK, OpenRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from braid.state.horizon import Horizon
    from braid.state.log import LogFile
    from braid.state.store import RunStore


Tidy = Callable[[pa.RecordBatch], pa.RecordBatch]
"""What makes fewer rows of some that merge, without a difference to whoever probes them."""


def open_ladder(store: RunStore, ladder: Ladder, horizon: Horizon) -> list[OpenRun]:
    """Map the runs that a row may still reach."""
    found = (store.open(run, horizon) for run in without_expired(ladder, horizon))
    return [opened for opened in found if opened is not None]


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
        horizon: Horizon,
        tidy: Tidy | None = None,
    ) -> Ladder:
        """The ladder with newly arrived, sorted rows, after the upkeep that they make due.

        `tidy` makes fewer rows of those that merge, and leaves them sorted.
        """
        kept = [pair for pair in ladder if without_expired((pair.run,), horizon)]
        fresh = alive(fresh, horizon)
        if not fresh.num_rows:
            return self._rewrite_dead(kept, horizon, tidy)
        data = encode(fresh)
        run = self._describe(fresh, data)
        run = replace(run, backing=(self.log.add(run, data),))
        kept.append(OpenRun(run, fresh))
        spilled = self.store.count_spilled(_runs(kept))
        first = merge_from(_runs(kept[spilled:]), horizon)
        if first is not None and self._fits(kept[spilled + first :]):
            older, newer = kept[: spilled + first], kept[spilled + first :]
            merged = self._merge(newer, horizon, tidy)
            written = sum(pair.run.rows for pair in merged)
            return self._rewrite_dead([*older, *merged], horizon, tidy, written)
        kept[-1] = OpenRun(self.store.write(run, data), fresh)
        return self._rewrite_dead(kept, horizon, tidy)

    def _fits(self, pairs: Sequence[OpenRun]) -> bool:
        """Whether there is room for the merged run beside those that it is made of."""
        return self.store.has_room(sum(pair.run.length for pair in pairs))

    def spill(
        self, ladder: Sequence[OpenRun], groups: NDArray[np.bool_], horizon: Horizon
    ) -> list[OpenRun]:
        """The ladder with some groups' rows on disk, where they are probed as before.

        Runs there come first, and merge with one another only, while there is room.
        """
        spilled = self.store.count_spilled(_runs(ladder))
        left, gone = self.detach(ladder[spilled:], groups, horizon, DISK)
        on_disk = [*ladder[:spilled], *([] if gone is None else [gone])]
        first = merge_from(_runs(on_disk), horizon)
        if first is not None:
            parts = [alive(pair.rows, horizon) for pair in on_disk[first:]]
            backing = [section for pair in on_disk[first:] for section in pair.run.backing]
            with suppress(StorageFull):
                merged = self.keep(parts, backing, DISK)
                on_disk[first:] = [] if merged is None else [merged]
        return on_disk + left

    def _rewrite_dead(
        self, ladder: list[OpenRun], horizon: Horizon, tidy: Tidy | None, written: int = 0
    ) -> Ladder:
        """The ladder with few dead rows, as far as a batch may go that has `written` some."""
        while (place := most_dead(_runs(ladder), horizon, written)) is not None:
            worst = ladder[place : place + 1]
            if not self._fits(worst):
                break
            try:
                ladder[place : place + 1] = self._merge(worst, horizon, tidy)
            except StorageFull:
                break
            written += worst[0].run.rows
        return _runs(ladder)

    def _merge(
        self, pairs: Sequence[OpenRun], horizon: Horizon, tidy: Tidy | None
    ) -> list[OpenRun]:
        """One run in place of several, without their dead rows; none if all turn out dead."""
        living = [alive(pair.rows, horizon) for pair in pairs]
        backing = [section for pair in pairs for section in pair.run.backing]
        merged = self.keep(living, backing, pairs[0].run.tier, tidy)
        return [] if merged is None else [merged]

    def _describe(self, rows: pa.RecordBatch, data: pa.Buffer) -> SortedRun:
        self._made += 1
        return self.store.describe(f"{self.token}-{self._made}", rows, data)

    def detach(
        self,
        ladder: Sequence[OpenRun],
        groups: NDArray[np.bool_],
        horizon: Horizon,
        tier: str,
    ) -> tuple[list[OpenRun], OpenRun | None]:
        """Take groups out of a state: what is left, and the living rows taken, as one run.

        What was taken is written first, so that a full disk leaves everything as it was.
        """
        gone = self.keep(*self.part(ladder, groups, horizon), tier)
        return self.without(ladder, groups), gone

    @staticmethod
    def part(
        ladder: Sequence[OpenRun], groups: NDArray[np.bool_], horizon: Horizon
    ) -> tuple[list[pa.RecordBatch], list[Section]]:
        """The living rows of some groups, and the sections that have them."""
        rows = (alive(of_groups(pair.rows, groups), horizon) for pair in ladder)
        parts = [part for part in rows if part.num_rows]
        return parts, [section for pair in ladder for section in _of(pair.run.backing, groups)]

    def without(self, ladder: Sequence[OpenRun], groups: NDArray[np.bool_]) -> list[OpenRun]:
        """A state without some groups.

        The old files go before the new ones come, for there may be no room for both; should
        the batch fail, they are made again from the log.
        """
        left = []
        for pair in ladder:
            run, rest = pair.run, of_groups(pair.rows, ~groups)
            backing = _of(run.backing, ~groups)
            if rest.num_rows == run.rows:
                left.append(pair._replace(run=replace(run, backing=backing)))
                continue
            data = encode(rest)
            self.store.remove(run)
            if rest.num_rows:
                lean = replace(self._describe(rest, data), backing=backing)
                left.append(OpenRun(self.store.write(lean, data, run.tier), rest))
        return left

    def parcel(
        self, ladder: Sequence[OpenRun], groups: NDArray[np.bool_], horizon: Horizon
    ) -> tuple[list[OpenRun], SortedRun | None]:
        """Take groups out of a state, to be sent away: what is left, and a run of what is not.

        It waits on disk; if that is full, the log must do.
        """
        parts, backing = self.part(ladder, groups, horizon)
        try:
            gone = self.keep(parts, backing, DISK)
            run = None if gone is None else gone.run
        except StorageFull:
            run = self._compose(parts, backing, None)[0]
        return self.without(ladder, groups), run

    def keep(
        self,
        parts: Sequence[pa.RecordBatch],
        backing: Sequence[Section],
        tier: str,
        tidy: Tidy | None = None,
    ) -> OpenRun | None:
        """Sorted rows as one run, in a tier of choice; no run if there are no rows."""
        parts = [part for part in parts if part.num_rows]
        if not parts:
            return None
        run, rows, data = self._compose(parts, backing, tidy)
        return OpenRun(self.store.write(run, data, tier), rows)

    def _compose(
        self, parts: list[pa.RecordBatch], backing: Sequence[Section], tidy: Tidy | None
    ) -> tuple[SortedRun, pa.RecordBatch, pa.Buffer]:
        """A run of some rows, which has no file yet; so many sections become one."""
        rows = merge_rows(parts)
        rows = rows if tidy is None else tidy(rows)
        data = encode(rows)
        run = self._describe(rows, data)
        if len(backing) > SEAL_SECTIONS:
            backing = [self.log.add(run, data)]
        return replace(run, backing=tuple(backing)), rows, data


def attach(ladder: Ladder, run: SortedRun) -> Ladder:
    """A ladder with a run of groups that were detached elsewhere.

    It comes first in its tier: its rows are old, and must not hold up the merging of new ones.
    """
    place = 0
    if run.tier != DISK:
        place = next((n for n, other in enumerate(ladder) if other.tier != DISK), len(ladder))
    return (*ladder[:place], run, *ladder[place:])


def relinquished(ladder: Ladder, groups: NDArray[np.bool_]) -> Ladder:
    """A ladder that has no rows of some groups, and whose sections have none that count."""
    return tuple(replace(run, backing=_of(run.backing, ~groups)) for run in ladder)


def _of(sections: Sequence[Section], groups: NDArray[np.bool_]) -> tuple[Section, ...]:
    """Sections of which some groups' rows count at most; those with none do not matter."""
    alike = {section.without: section for section in sections}  # most lack the same groups
    left = {
        without: one.lacking(~groups).without
        for without, one in alike.items()
        if one.counting(groups).any()
    }
    return tuple(
        replace(section, without=left[section.without])
        for section in sections
        if section.without in left
    )


def _runs(ladder: Sequence[OpenRun]) -> Ladder:
    return tuple(pair.run for pair in ladder)
