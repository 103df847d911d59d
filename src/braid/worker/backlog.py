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

from braid.record.move import Waiting
from braid.state.groups import group_counts, marked
from braid.state.order import merge_rows
from braid.state.runs import hashes_of, of_groups
from braid.state.store import log_rows, read_section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from braid.state.log import LogFile
    from braid.worker.round_orders import RoundOrders

_LEAST_SECTION = 100  # rows; what is let go is let go a section at a time
_PIECE = 0.1  # of what a worker may join in a batch


class Backlog:
    """What waits at a worker in a round; `waiting` is what still will after the batch."""

    def __init__(
        self, step: RoundOrders, log: LogFile, arrived: Sequence[pa.RecordBatch]
    ) -> None:
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
        most = self._most(number)
        if not before and not paused.any() and most == math.inf:
            return arrived
        weights = self._weights(space, len(owned))
        active = of_groups(arrived, ~paused)
        joins = evenly(hashes_of(active), weights, most)
        if not before and joins.all() and active.num_rows == arrived.num_rows:
            return arrived
        ready = [_filtered(active, joins)]
        most -= _weight(ready[0], weights)
        for place, each in enumerate(before):
            section, free = each.section, each.section.counting(owned & ~paused)
            stay = section.counting(owned)
            # The oldest go in any case, or they might wait for ever.
            if free.any() and (most > 0 or not place):
                rows = of_groups(read_section(self.log.path.parent, section), free)
                ready.append(rows)
                most -= _weight(rows, weights)
                stay &= paused
            if stay.any():
                self.waiting.append(replace(each, section=section.lacking(~stay)))
        self._hold_surplus(number, _filtered(active, ~joins), weights)
        self._hold(number, of_groups(arrived, paused))
        ready = [rows for rows in ready if rows.num_rows]
        return merge_rows(ready) if ready else arrived.slice(0, 0)

    def _weights(self, space: int, groups: int) -> NDArray[np.float64]:
        """What a row of each group counts, in rows and results."""
        share = self.step.worker_orders.share
        return np.ones(groups) if share is None else share.weights(space, groups)

    def _most(self, number: int) -> float:
        """How much may join that comes by a port: its part of what the worker may take."""
        share, may_wait = self.step.worker_orders.share, self.step.plan.may_wait
        if share is None or not may_wait(self.ports[number].space):
            return math.inf
        counted = zip(self._counts, self.ports, strict=True)
        total = sum(rows for rows, port in counted if may_wait(port.space))
        received = sum(rows.num_rows for rows in self.arrived)
        return share.for_joining(received) * self._counts[number] / max(1, total)

    def _hold_surplus(
        self, number: int, rows: pa.RecordBatch, weights: NDArray[np.float64]
    ) -> None:
        """Have rows wait that are too many, in pieces that a later batch may take."""
        self.held_rows += rows.num_rows
        share = self.step.worker_orders.share
        if not rows.num_rows or share is None:
            return
        usual = max(share.usual, _weight(rows, weights) / rows.num_rows)
        length = max(_LEAST_SECTION, int(_PIECE * share.most / usual))
        for first in range(0, rows.num_rows, length):
            self._hold(number, rows.slice(first, length))

    def _hold(self, number: int, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            where = self.ports[number].space, self.step.round, number
            self.waiting.append(Waiting(*where, log_rows(self.log, rows), self.step.low_us))


def evenly(
    hashes: NDArray[np.uint64], weights: NDArray[np.float64], most: float
) -> NDArray[np.bool_]:
    """Some rows, sorted by hash, of so much weight: large groups give up what others have not.

    >>> evenly(np.array([0, 1, 2, 3, 2**63], np.uint64), np.array([1.0, 1.0]), 3)
    array([ True,  True, False, False,  True])
    """
    counts = group_counts(hashes, len(weights))
    amounts = counts * weights
    if amounts.sum() <= most:
        return np.ones(len(hashes), bool)
    taken = (np.minimum(amounts, _level(amounts, most)) // weights).astype(np.int64)
    # What is left for want of whole rows, one row of a group each.
    some = np.flatnonzero(taken < counts)
    left = most - float((taken * weights).sum())
    taken[some[np.cumsum(weights[some]) <= left]] += 1
    joins = np.tile([True, False], len(weights))
    return np.repeat(joins, np.column_stack([taken, counts - taken]).ravel())


def _level(amounts: NDArray[np.float64], most: float) -> float:
    """Up to where amounts, of more than `most` in all, fill up so that they make up `most`."""
    low_first = np.sort(amounts)
    below = np.cumsum(low_first) - low_first
    levels = (most - below) / np.arange(len(amounts), 0, -1)
    return float(levels[np.flatnonzero(levels <= low_first)[0]])


def _weight(rows: pa.RecordBatch, weights: NDArray[np.float64]) -> float:
    return float((weights * group_counts(hashes_of(rows), len(weights))).sum())


def _filtered(rows: pa.RecordBatch, mask: NDArray[np.bool_]) -> pa.RecordBatch:
    return rows if mask.all() else rows.filter(pa.array(mask))
