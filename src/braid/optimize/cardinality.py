"""How many rows joins make and states hold, for any set of a graph's streams.

A set of streams is an integer with bit *i* for stream *i*. In a steady state, that of a single
stream holds rate times window rows. Rows of several streams are together in the state of their
join if all of them are still within their windows, so its size is the product of the single
ones' with the selectivities. It is renewed whenever a member's window passes: each of its
results was made by its latest member, which may be any of them.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.model.join_graph import JoinGraph

Streams = int
"""A set of streams, bit by bit."""


def members(streams: Streams) -> Iterator[int]:
    """The numbers in a set of streams, from the lowest.

    >>> list(members(0b1101))
    [0, 2, 3]
    """
    while streams:
        lowest = streams & -streams
        yield lowest.bit_length() - 1
        streams ^= lowest


class Cardinalities:
    """Sizes of one graph's joins; each answer is computed once.

    * `rows(streams)`: rows in the state of a join of some streams
    * `turnover(streams)`: how many times per unit of time such a state is renewed
    * `window(streams)`: the shortest window of some streams
    * `row_bytes(streams)`: the size of a row of their join; 1 if the graph does not know
    * `neighbours(streams)`: all that have a predicate with some of these, which may be among
      them

    And `keys` are the streams that each key of the graph connects.
    """

    def __init__(self, graph: JoinGraph) -> None:
        """Number the streams in the graph's order."""
        names = graph.streams
        self.everything: Streams = (1 << len(names)) - 1
        self._windows = [float(graph.windows[name]) for name in names]
        self._single = [
            graph.rates[name] * window
            for name, window in zip(names, self._windows, strict=True)
        ]
        self._width = [graph.row_bytes[name] for name in names] if graph.row_bytes else None
        self._pairs = [[graph.selectivity_of(one, other) for other in names] for one in names]
        self._joined = [
            _set_of([n for n, other in enumerate(names) if graph.are_joined(one, other)])
            for one in names
        ]
        self.keys = [_set_of([names.index(name) for name in key]) for key in graph.keys]
        # Asked millions of times: the cache's own function is quicker than one around it.
        self._independent_rows = cache(self._find_independent_rows)
        self._within_key = cache(self._find_within_key)
        self.rows = cache(self._find_rows) if self.keys else self._independent_rows
        self.turnover = cache(self._find_turnover)
        self.window = cache(self._find_window)
        self.row_bytes = cache(self._find_row_bytes)
        self.neighbours = cache(self._find_neighbours)

    def arrivals(self, streams: Streams) -> float:
        """How many rows of a join of some streams come per unit of time."""
        return self.rows(streams) * self.turnover(streams)

    def growth(self, known: Streams, found: Streams) -> float:
        """How many rows of `found` join one row of `known`, on average."""
        rows = self.rows(known)
        return self.rows(known | found) / rows if rows else 0.0

    def _find_rows(self, streams: Streams) -> float:
        rows = self._independent_rows(streams)
        for key in self.keys:
            rows *= self._within_key(streams & key)
        return rows

    def _find_turnover(self, streams: Streams) -> float:
        return sum(1.0 / self._windows[number] for number in members(streams))

    def _find_window(self, streams: Streams) -> float:
        return min(self._windows[number] for number in members(streams))

    def _find_row_bytes(self, streams: Streams) -> float:
        if self._width is None:
            return 1.0
        return sum(self._width[number] for number in members(streams))

    def _find_neighbours(self, streams: Streams) -> Streams:
        found = 0
        for number in members(streams):
            found |= self._joined[number]
        return found

    def _find_independent_rows(self, streams: Streams) -> float:
        """The size of a state by all selectivities but those within a key."""
        if not streams:
            return 1.0
        number = streams.bit_length() - 1
        rest = streams ^ (1 << number)
        keyed = 0
        for key in self.keys:
            keyed |= key if key >> number & 1 else 0
        pairs = self._pairs[number]
        rows = self._independent_rows(rest) * self._single[number]
        for other in members(rest & self._joined[number] & ~keyed):
            rows *= pairs[other]
        return rows

    def _find_within_key(self, streams: Streams) -> float:
        """The selectivity of an equi-join of streams that share a key.

        It is that of a tree of pairs, as the other pairs follow from these. It is the tree with
        the largest ones: if every value of a stream is also in those that have more values,
        1 / (number of values) counts once for each stream but the one that has the fewest.
        """
        return _largest_tree(list(members(streams)), self._pairs)


def _set_of(numbers: Sequence[int]) -> Streams:
    return sum(1 << number for number in numbers)


def _largest_tree(numbers: Sequence[int], pairs: Sequence[Sequence[float]]) -> float:
    """The product of a maximum spanning tree's selectivities, by Kruskal's algorithm."""
    product = 1.0
    group = {number: number for number in numbers}
    for one, other in sorted(combinations(numbers, 2), key=lambda p: -pairs[p[0]][p[1]]):
        if group[one] != group[other]:
            product *= pairs[one][other]
            left = group[other]
            group = {n: group[one] if g == left else g for n, g in group.items()}
    return product
