"""The horizon of a state: the rows that no future row can reach any more.

A stream's row is out of reach once it is older than its window. A joined row has a deadline,
the last event time that may still join it, which is that of the member whose window ends first.
Once all rows to come are younger, the joined row is out of reach, however young its other
members are.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.state.runs import deadlines_of, times_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from braid.state.runs import SortedRun


@dataclass(frozen=True, slots=True)
class Horizon:
    """Rows are dead that are older than `time_us`, or whose deadline is before `low_us`.

    Where one of the two is None, no row is dead for that reason.
    """

    time_us: int | None = None
    low_us: int | None = None

    def of(self, run: SortedRun) -> Horizon:
        """The horizon of one run: a joined one of older records is purged by time alone."""
        return self if run.until_us else replace(self, low_us=None)

    def is_behind(self, run: SortedRun) -> bool:
        """Whether all rows of a run are known to be dead."""
        if self.time_us is not None and run.newest_us < self.time_us:
            return True
        return self.low_us is not None and bool(run.until_us) and run.until_us[-1] < self.low_us

    def may_be_past(self, run: SortedRun, rows: pa.RecordBatch) -> bool:
        """Whether some row of a run, whose rows these are, may be dead."""
        if self.time_us is not None and run.oldest_us < self.time_us:
            return True
        if self.low_us is None or deadlines_of(rows) is None:
            return False
        return not run.until_us or run.until_us[0] < self.low_us

    def living(self, rows: pa.RecordBatch) -> NDArray[np.bool_] | None:
        """Which rows are alive; None if all are."""
        mask = None
        if self.time_us is not None:
            mask = times_of(rows) >= self.time_us
        deadlines = deadlines_of(rows)
        if self.low_us is not None and deadlines is not None:
            in_time = deadlines >= self.low_us
            mask = in_time if mask is None else mask & in_time
        return None if mask is None or mask.all() else mask

    def dead_rows(self, run: SortedRun) -> int:
        """About how many rows of a run are dead."""
        return max(self._dead_by_time(run), self._dead_by_deadline(run))

    def _dead_by_time(self, run: SortedRun) -> int:
        """An estimate, as if the run's rows were spread evenly over its time."""
        if self.time_us is None or self.time_us <= run.oldest_us:
            return 0
        return run.rows * (self.time_us - run.oldest_us) // max(1, run.span_us)

    def _dead_by_deadline(self, run: SortedRun) -> int:
        """An estimate, as if deadlines were spread evenly between two that are known."""
        known = run.until_us
        if self.low_us is None or not known:
            return 0
        place = bisect_left(known, self.low_us)
        if place == 0:
            return 0
        if place == len(known):
            return run.rows
        before, behind = known[place - 1 : place + 1]
        share = place - 1 + (self.low_us - before) / (behind - before)
        return max(1, int(run.rows * share / (len(known) - 1)))


NO_HORIZON = Horizon()
"""All rows are alive."""


def alive(rows: pa.RecordBatch, horizon: Horizon) -> pa.RecordBatch:
    """The rows that a future row may still reach."""
    mask = horizon.living(rows)
    return rows if mask is None else rows.filter(pa.array(mask))
