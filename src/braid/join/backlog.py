"""Rows that a worker has been sent, but does not join yet: they wait in the log.

Those of a group that moves wait until its state has arrived. And where a worker is to take no
more than its share of a batch, the surplus waits for later ones: what the largest groups have
above the others, so that a burst of one key holds up no other.

Rows that wait count as not having come: the batch that lets them go joins them like its own. So
nothing that they could meet may be purged before, here or in later rounds, and no moment closed
that they could count for.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.state.move import Waiting
from braid.state.order import merge_rows
from braid.state.runs import group_of, hashes_of, marked, of_groups
from braid.state.store import log_rows, read_section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from braid.join.worker import Step
    from braid.state.log import LogFile

_LEAST_SECTION = 1000  # rows; what is let go is let go a section at a time


class Backlog:
    """What waits at a worker in a round; `waiting` is what still will after the batch."""

    def __init__(self, step: Step, log: LogFile, arrived: Sequence[pa.RecordBatch]) -> None:
        """Begin with what the last commit left; `arrived` are the rows by port."""
        self.step, self.log, self.arrived = step, log, arrived
        self.ports = step.plan.rounds.rounds[step.round].ports
        self._before = [each for each in step.waiting if each.round == step.round]
        self._counts: list[int] = [rows.num_rows for rows in arrived]
        for each in self._before:
            self._counts[each.port] += each.section.rows
        self.waiting: list[Waiting] = []
        self.held_rows = 0

    def admitted(self, number: int, owned: NDArray[np.bool_]) -> pa.RecordBatch:
        """Of a port's rows that arrived or waited, those that are to join now."""
        arrived, space = self.arrived[number], self.ports[number].space
        before = [each for each in self._before if each.port == number]
        paused = marked(self.step.paused.get(space, ()), len(owned))
        most = share = self._most(number)
        if not before and not paused.any() and arrived.num_rows <= most:
            return arrived
        ready = []
        for each in before:
            section, free = each.section, each.section.counting(owned & ~paused)
            stay = section.counting(owned)
            if free.any() and most > 0:
                rows = of_groups(read_section(self.log.path.parent, section), free)
                ready.append(rows)
                most -= rows.num_rows
                stay &= paused
            if stay.any():
                self.waiting.append(replace(each, section=section.lacking(~stay)))
        active = of_groups(arrived, ~paused)
        joins = evenly(hashes_of(active), len(owned), max(0, most))
        ready.append(_filtered(active, joins))
        surplus = _filtered(active, ~joins)
        self.held_rows += surplus.num_rows
        length = max(_LEAST_SECTION, share)
        for first in range(0, surplus.num_rows, length):
            self._hold(number, surplus.slice(first, length))
        self._hold(number, of_groups(arrived, paused))
        ready = [rows for rows in ready if rows.num_rows]
        return merge_rows(ready) if ready else arrived.slice(0, 0)

    def _most(self, number: int) -> int:
        """How many rows may join that come by a port: its part of what the worker may take."""
        most, count = self.step.chores.most_rows, self._counts[number]
        may_wait = self.step.plan.may_wait
        if most is None or not may_wait(self.ports[number].space):
            return count
        counted = zip(self._counts, self.ports, strict=True)
        total = sum(rows for rows, port in counted if may_wait(port.space))
        return count if total <= most else math.ceil(count * most / total)

    def _hold(self, number: int, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            where = self.ports[number].space, self.step.round, number
            self.waiting.append(Waiting(*where, log_rows(self.log, rows), self.step.low_us))


def evenly(hashes: NDArray[np.uint64], groups: int, most: int) -> NDArray[np.bool_]:
    """At most so many of some rows, sorted by hash: large groups give up what others have not.

    >>> evenly(np.array([0, 1, 2, 3, 2**63], np.uint64), 2, 3)
    array([ True,  True, False, False,  True])
    """
    if len(hashes) <= most:
        return np.ones(len(hashes), bool)
    which = group_of(hashes, groups)
    counts = np.bincount(which, minlength=groups)
    place = np.arange(len(hashes)) - (np.cumsum(counts) - counts)[which]
    order = np.argsort(place, kind="stable")  # every group's first row, then every second, …
    joins = np.zeros(len(hashes), bool)
    joins[order[:most]] = True
    return joins


def _filtered(rows: pa.RecordBatch, mask: NDArray[np.bool_]) -> pa.RecordBatch:
    return rows if mask.all() else rows.filter(pa.array(mask))
