"""Costs of plans written down a second time, step by step from the chapters, and brute force.

Nothing here uses the optimizers' own sizes, costs or orders: rows are followed from state to
state, and all orders and trees are tried. Trees are nested tuples of names.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from braid.model.join_graph import JoinGraph

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

Tree = str | tuple["Tree", ...]


def names(tree: Tree) -> tuple[str, ...]:
    if isinstance(tree, str):
        return (tree,)
    return tuple(name for child in tree for name in names(child))


class Reference:
    """What trees over a graph cost, with the best of all probe orders.

    `keep` is C_i + C_d; each row that probes costs `search`, and each that is found `match`. A
    row is purged with its first member; or, if a `lag` is given, so long after that, with a
    third as many dead rows, or after 17/16 of the shortest window from its youngest member on.
    """

    def __init__(
        self,
        graph: JoinGraph,
        *,
        keep: float = 2.0,
        search: float = 0.0,
        match: float = 1.0,
        cartesian: bool = True,
        lag: float | None = None,
    ) -> None:
        self.lag = lag
        self.keep, self.search, self.match, self.cartesian = keep, search, match, cartesian
        self.rates = graph.rates
        self.window = {
            name: graph.window if isinstance(graph.window, int | float) else graph.window[name]
            for name in graph.rates
        }
        self.selectivity: dict[tuple[str, str], float] = {}
        for (one, other), value in graph.selectivity.items():
            self.selectivity[one, other] = self.selectivity[other, one] = value

    def between(self, these: Sequence[str], those: Sequence[str]) -> float:
        """The selectivity of all predicates between two sets of streams."""
        pairs = ((one, other) for one in these for other in those)
        return math.prod(self.selectivity.get(pair, 1.0) for pair in pairs)

    def within(self, these: Sequence[str]) -> float:
        return math.prod(self.selectivity.get(pair, 1.0) for pair in combinations(these, 2))

    def state_rows(self, tree: Tree) -> float:
        """Rows of a state: all members are within their windows and join."""
        singles = (self.rates[name] * self.window[name] for name in names(tree))
        return math.prod(singles) * self.within(names(tree))

    def arrivals(self, tree: Tree) -> float:
        """New rows per unit of time: whoever comes last meets the others' windows."""
        total = 0.0
        for last in names(tree):
            met = (self.rates[n] * self.window[n] for n in names(tree) if n != last)
            total += self.rates[last] * math.prod(met)
        return total * self.within(names(tree))

    def cascade(self, origin: Tree, order: Sequence[Tree]) -> float:
        """The cost of an input's new rows that probe others one after the other."""
        rows, known, cost = self.arrivals(origin), names(origin), 0.0
        for each in order:
            found = rows * self.state_rows(each) * self.between(known, names(each))
            cost += self.search * rows + self.match * found
            rows, known = found, known + names(each)
        return cost

    def best_cascade(self, origin: Tree, others: Sequence[Tree]) -> float:
        """The cost of the best of all orders; infinite if all have products that may not be."""
        states = {each: (names(each), self.state_rows(each)) for each in others}

        def cheapest(rows: float, known: tuple[str, ...], left: Sequence[Tree]) -> float:
            costs = [0.0] if not left else [math.inf]
            for each in left:
                members, size = states[each]
                if self.cartesian or self.are_joined(known, members):
                    found = rows * size * self.between(known, members)
                    rest = [other for other in left if other is not each]
                    after = cheapest(found, known + members, rest)
                    costs.append(self.search * rows + self.match * found + after)
            return min(costs)

        return cheapest(self.arrivals(origin), names(origin), others)

    def are_joined(self, these: Sequence[str], those: Sequence[str]) -> bool:
        return any((one, other) in self.selectivity for one in these for other in those)

    def costs(self, tree: Tree) -> tuple[float, float]:
        """CPU and memory."""
        if isinstance(tree, str):
            return 0.0, 0.0
        cpu = memory = 0.0
        for child in tree:
            below = self.costs(child)
            probes = self.best_cascade(child, [other for other in tree if other != child])
            cpu += below[0] + self.keep * self.arrivals(child) + probes
            memory += below[1] + self.held(child)
        return cpu, memory

    def memory(self, tree: Tree) -> float:
        if isinstance(tree, str):
            return 0.0
        return sum(self.memory(child) + self.held(child) for child in tree)

    def held(self, tree: Tree) -> float:
        if self.lag is None:
            return self.state_rows(tree)
        shortest = min(self.window[name] for name in names(tree))
        kept = min(self.arrivals(tree) * shortest * 17 / 16, self.state_rows(tree) * 4 / 3)
        return kept + self.arrivals(tree) * self.lag


def all_trees(streams: Sequence[str]) -> Iterator[Tree]:
    """Every tree of m-way joins: the first stream's set and the trees of all others."""
    if len(streams) == 1:
        yield streams[0]
        return
    for parts in _partitions(streams):
        if len(parts) > 1:
            yield from _products(parts)


def _products(parts: Sequence[Sequence[str]]) -> Iterator[tuple[Tree, ...]]:
    if not parts:
        yield ()
        return
    for first in all_trees(parts[0]):
        for rest in _products(parts[1:]):
            yield (first, *rest)


def _partitions(streams: Sequence[str]) -> Iterator[list[list[str]]]:
    """Each stream joins one of the sets so far, or begins one."""
    if not streams:
        yield []
        return
    *before, last = streams
    for parts in _partitions(before):
        for number in range(len(parts)):
            yield [[*part, last] if number == n else part for n, part in enumerate(parts)]
        yield [*parts, [last]]


def binary_trees(streams: Sequence[str]) -> Iterator[Tree]:
    if len(streams) == 1:
        yield streams[0]
        return
    first, *others = streams
    for count in range(len(others)):
        for chosen in combinations(others, count):
            left = [name for name in others if name not in chosen]
            for one in binary_trees([first, *chosen]):
                for other in binary_trees(left):
                    yield (one, other)


def pareto(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other beats, each once."""
    best: list[tuple[float, float]] = []
    for point in sorted(set(points)):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


def random_graph(
    random: Random, streams: int, *, more_pairs: float = 0.0, windows: bool = False
) -> JoinGraph:
    """As in the dissertation: rates of 1 to 100, joins at random, selectivities of 0 to 1.

    A random tree connects the streams, and any other pair is joined with some probability. The
    window, of which the dissertation says nothing, is chosen so that joins shrink and grow.
    """
    all_names = [f"s{number}" for number in range(streams)]
    pairs = {}
    for number in range(1, streams):
        pairs[all_names[random.randrange(number)], all_names[number]] = 1 - random.random()
    for pair in combinations(all_names, 2):
        if pair not in pairs and random.random() < more_pairs:
            pairs[pair] = 1 - random.random()
    one = random.choice([0.01, 0.05, 0.3, 2.0])
    each = {name: one * random.uniform(0.3, 3) for name in all_names}
    rates = {name: random.uniform(1, 100) for name in all_names}
    return JoinGraph(rates, pairs, window=each if windows else one)


def star(random: Random, streams: int, *, windows: bool = False) -> JoinGraph:
    """A centre that all others are joined with, and nothing else."""
    tree = random_graph(random, streams, windows=windows)
    pairs = {("s0", f"s{number}"): 1 - random.random() for number in range(1, streams)}
    return JoinGraph(tree.rates, pairs, tree.window)
