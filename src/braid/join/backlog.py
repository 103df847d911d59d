"""Rows that a worker has been sent, but may not join yet: they wait in the log.

Those of a group that moves wait until its state has arrived. They count as not having come: the
batch that lets them go joins them like its own. So nothing that they could meet may be purged
before, here or in later rounds, and no moment closed that they could count for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from braid.state.move import Waiting
from braid.state.order import merge_rows
from braid.state.runs import encode, marked, of_groups
from braid.state.store import RunStore, read_section

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from braid.join.worker import Step
    from braid.plan.rounds import Port
    from braid.state.log import LogFile


class Backlog:
    """What waits at a worker in a round; `waiting` is what still will after the batch."""

    def __init__(self, step: Step, log: LogFile) -> None:
        """Begin with what the last commit left."""
        self.step, self.log = step, log
        self._before = [each for each in step.waiting if each.round == step.round]
        self.waiting: list[Waiting] = []

    def admitted(
        self, number: int, port: Port, arrived: pa.RecordBatch, owned: NDArray[np.bool_]
    ) -> pa.RecordBatch:
        """Of a port's rows that arrived or waited, those that are to join now."""
        before = [each for each in self._before if each.port == number]
        paused = marked(self.step.paused.get(port.space, ()), len(owned))
        if not before and not paused.any():
            return arrived
        ready = [of_groups(arrived, ~paused)]
        for each in before:
            section = each.section
            free = section.counting(owned & ~paused)
            if free.any():
                ready.append(of_groups(read_section(self.log.path.parent, section), free))
            if section.counting(owned & paused).any():
                self.waiting.append(replace(each, section=section.lacking(free)))
        self._hold(number, port, of_groups(arrived, paused))
        ready = [rows for rows in ready if rows.num_rows]
        return merge_rows(ready) if ready else arrived.slice(0, 0)

    def _hold(self, number: int, port: Port, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            data = encode(rows)
            section = self.log.add(RunStore.describe("", rows, data), data)
            since_us = self.step.low_us
            self.waiting.append(Waiting(port.space, self.step.round, number, section, since_us))
