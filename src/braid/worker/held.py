"""A worker's states in one round: opened as the last commit left them, and inserted into.

What was opened is not changed by an insert, so probes may look at it all the while.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.record.commit import newer
from braid.state.horizon import NO_HORIZON, Horizon, alive
from braid.state.log import LogFile
from braid.state.order import merge_rows
from braid.state.runs import times_of
from braid.state.upkeep import Upkeep, open_ladder
from braid.worker.backlog import Backlog
from braid.worker.grouping import combine
from braid.worker.history import without_superseded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from braid.plan.rounds import Port
    from braid.state.runs import Ladder
    from braid.state.store import OpenRun, RunStore
    from braid.state.upkeep import Tidy
    from braid.worker.arrivals import Arrivals
    from braid.worker.round_orders import RoundOrders


class WorkerStates:
    """The states of one worker; `ladders` are those of the states that were inserted into."""

    def __init__(
        self, step: RoundOrders, stores: Mapping[int, RunStore], arrivals: Arrivals, token: str
    ) -> None:
        """Open nothing yet; files get names from `token`."""
        self.step, self.plan, self.stores, self.arrivals = step, step.plan, stores, arrivals
        folder = next(iter(stores.values())).log
        self.log = LogFile(folder / f"{token}.log")
        self.upkeeps = {
            space: Upkeep(store, self.log, f"{token}-{space}")
            for space, store in stores.items()
        }
        self.backlog = Backlog(step, self.log, arrivals.rows)
        self.opened: dict[int, list[OpenRun]] = {}
        self.ladders: dict[int, Ladder] = {}

    def open(self, state: int) -> list[OpenRun]:
        """The runs of a state as the last commit left it."""
        if state not in self.opened:
            kind = self.plan.rounds.states[state]
            store = self.stores[kind.space]
            ladder = self.step.ladders[state]
            self.opened[state] = open_ladder(store, ladder, self.horizon(state))
        return self.opened[state]

    def horizon(self, state: int) -> Horizon:
        """Which rows of a state are as good as gone already."""
        return self._horizon(state, self._oldest_us)

    def _horizon(self, state: int, low_us: int | None) -> Horizon:
        """Which rows of a state make no difference once none comes from below `low_us`."""
        if state == self.plan.rounds.grouped or self.plan.rounds.states[state].waits:
            closed = self.step.closed_us
            return NO_HORIZON if closed is None else Horizon(closed + 1)
        return self.plan.horizon(self.plan.rounds.states[state], low_us)

    @cached_property
    def _oldest_us(self) -> int | None:
        """No row that is to join in this batch is older; those that waited may be."""
        if not self.plan.is_ordered:
            return self.step.purged_us if self.step.lags else self.step.low_us
        return None if self.step.closed_us is None else self.step.closed_us + 1

    @cached_property
    def _oldest_next_us(self) -> int | None:
        """No row that is to join in later batches is older, as far as this worker knows.

        What it knows of the watermark after the batch is never above the truth, which takes all
        workers' rows into account, so nothing alive is lost.
        """
        if self.plan.is_ordered:
            closing = self.step.finalize_up_to_us
            return self._oldest_us if closing is None else closing + 1
        if self.step.lags:
            return self.step.low_us
        pairs = zip(self.arrivals.newest_us, self.step.newest_us, strict=True)
        newest = [newer(here, so_far) for here, so_far in pairs]
        return self.plan.watermark_us(newest, self.step.watermark_us)

    def insert(self, state: int, rows: pa.RecordBatch) -> None:
        """Add sorted rows to a state."""
        kind = self.plan.rounds.states[state]
        horizon = self._horizon(state, self._oldest_next_us)
        upkeep = self.upkeeps[kind.space]
        self.ladders[state] = upkeep.insert(self.open(state), rows, horizon, self._tidy(state))

    def _tidy(self, state: int) -> Tidy | None:
        kind = self.plan.rounds.states[state]
        if kind.waits:
            return None
        if state == self.plan.rounds.grouped:
            return lambda rows: combine(self.plan, rows, self.step.finalize_up_to_us)
        (stream, *_) = kind.relation.streams
        history = self.plan.query.streams[stream].history
        if history is None:
            return None
        layout = self.plan.wire.layout(kind)
        return lambda rows: without_superseded(history, layout, stream, rows)

    def admitted(self, number: int, port: Port) -> pa.RecordBatch:
        """A port's rows that are to join now.

        In an ordered query others wait for their time, else in the backlog.
        """
        arrived = self.arrivals.rows[number]
        self._check_routing(port, arrived)
        if port.waiting is None:
            owned = self.stores[port.space].ownership.owned
            return self.backlog.admitted(number, owned)
        due = self.step.finalize_up_to_us
        waiting = self.open(port.waiting)
        upkeep = self.upkeeps[port.space]
        if due is None:
            self.ladders[port.waiting] = upkeep.insert(waiting, arrived, NO_HORIZON)
            return arrived.slice(0, 0)
        self.ladders[port.waiting] = upkeep.insert(waiting, arrived, Horizon(due + 1))
        # A run may still hold rows that have been let go.
        parts = [alive(pair.rows, self._horizon(port.waiting, None)) for pair in waiting]
        ready = [rows.filter(pa.array(times_of(rows) <= due)) for rows in [*parts, arrived]]
        ready = [rows for rows in ready if rows.num_rows]
        return merge_rows(ready) if ready else arrived.slice(0, 0)

    def _check_routing(self, port: Port, rows: pa.RecordBatch) -> None:
        """A row of a group that is not ours would miss its partners: better to stop."""
        ownership = self.stores[port.space].ownership
        if ownership.keep(rows, NO_HORIZON).num_rows != rows.num_rows:
            raise AssertionError(f"worker {self.step.worker} was sent rows of other groups")
