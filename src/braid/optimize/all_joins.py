"""All joins that any tree over some streams may have, each with its share of the costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from braid.optimize.arrangement import arrange

if TYPE_CHECKING:
    from braid.optimize.cost_model import CostModel
    from braid.optimize.estimate import Estimator

Sets = NDArray[np.int64]
Costs = NDArray[np.float64]

_LINES = 1 << 14  # joins that are computed together, as each needs 2^inputs numbers


@lru_cache(maxsize=4)
def all_inputs(streams: int) -> tuple[Sets, ...]:
    """The inputs of all joins of 2, 3 and more inputs over so many streams, one line per join.

    Inputs are disjoint sets of streams. Stream by stream, every choice so far is continued in
    all ways: the stream is left out, goes into one of the sets, or begins a set of its own.

    >>> [len(joins) for joins in all_inputs(3)]
    [6, 1]
    """
    chosen = [np.zeros((1, 0), np.int64)]  # by the number of sets
    for number in range(streams):
        bit = 1 << number
        begun = [np.insert(sets, sets.shape[1], bit, axis=1) for sets in chosen]
        chosen = [np.vstack([sets, *_widened(sets, bit)]) for sets in chosen]
        chosen[1:] = [np.vstack(both) for both in zip(chosen[1:], begun[:-1], strict=True)]
        chosen.append(begun[-1])
    return tuple(chosen[2:])


def _widened(choices: Sets, bit: int) -> list[Sets]:
    """The choices with a stream in their first set, then in their second, and so on."""
    places = range(choices.shape[1])
    return [choices + bit * (np.arange(len(places)) == place) for place in places]


@dataclass(frozen=True, slots=True)
class PricedJoins:
    """Joins of as many inputs each, sorted by the streams that they join."""

    joined: Sets
    inputs: Sets
    cpu: Costs
    memory: Costs

    def of(self, streams: int) -> PricedJoins:
        """Those that join just these streams."""
        lower, upper = np.searchsorted(self.joined, [streams, streams + 1])
        part = slice(lower, upper)
        return PricedJoins(
            self.joined[part], self.inputs[part], self.cpu[part], self.memory[part]
        )


def price_joins(estimator: Estimator) -> list[PricedJoins]:
    """All joins over a graph, with the cheapest probe orders; impossible ones cost infinity."""
    tables = _Tables(estimator)
    priced = []
    for unsorted in all_inputs(len(estimator.graph.streams)):
        inputs = unsorted[np.argsort(unsorted.sum(axis=1), kind="stable")]
        chunks = range(0, len(inputs), _LINES)
        costs = [tables.costs(inputs[at : at + _LINES]) for at in chunks]
        cpu, memory = (np.concatenate(each) for each in zip(*costs, strict=True))
        priced.append(PricedJoins(inputs.sum(axis=1), inputs, cpu, memory))
    return priced


class _Tables:
    """An estimator's answers for all sets of streams, as arrays."""

    def __init__(self, estimator: Estimator) -> None:
        sizes, sets = estimator.sizes, range(estimator.sizes.everything + 1)
        self.model: CostModel = estimator.model
        self.cartesian = estimator.cartesian
        self.rows = np.array([sizes.rows(each) for each in sets])
        self.memory = np.array([0.0, *(estimator.memory(each) for each in sets[1:])])
        self.neighbours = np.array([sizes.neighbours(each) for each in sets])
        self.turnover = np.array([sizes.turnover(each) for each in sets])
        self.arrivals = self.rows * self.turnover
        self.keys = estimator.keys

    def costs(self, inputs: Sets) -> tuple[Costs, Costs]:
        """The shares of some joins in CPU and memory."""
        arranged, arrivals = arrange(self.keys, inputs), self.arrivals[inputs]
        between = (self.turnover[inputs] * self._rows_between(inputs)).sum(axis=1)
        results = self.turnover[inputs].sum(axis=1) * self.rows[inputs.sum(axis=1)]
        # What is impossible costs infinity anyway.
        halves = np.where(arranged.parted & np.isfinite(between), between, 0.0)
        sent = (arranged.sent * arrivals).sum(axis=1) + halves
        cpu: Costs = self.model.keep((arranged.kept * arrivals).sum(axis=1))
        cpu = cpu + self.model.probe(arrivals.sum(axis=1) + between, between + results)
        return cpu + self.model.send(sent), (arranged.kept * self.memory[inputs]).sum(axis=1)

    def _rows_between(self, inputs: Sets) -> Costs:
        """As in `best_orders`, but for many joins: what each input makes by its best order."""
        unions = np.zeros((len(inputs), 1), np.int64)  # column n: the inputs of n's bits
        for column in inputs.T:
            unions = np.hstack([unions, unions | column[:, None]])
        rows, everything = self.rows[unions], unions.shape[1] - 1
        made = np.zeros(unions.shape)  # from here on, without those that are here
        for known in range(everything - 1, 0, -1):
            made[:, known] = np.inf
            for place, column in enumerate(inputs.T):
                step = known | 1 << place
                if step == known:
                    continue
                after = made[:, step] + (rows[:, step] if step != everything else 0.0)
                if not self.cartesian:
                    near = self.neighbours[unions[:, known]] & column
                    after = np.where(near, after, np.inf)
                np.minimum(made[:, known], after, out=made[:, known])
        return made[:, 1 << np.arange(inputs.shape[1])]
