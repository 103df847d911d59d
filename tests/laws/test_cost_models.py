"""The cost models against joins that are really done: rows come, probe, match and expire."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from braid import JoinGraph
from braid.optimize import IndexProbes, NestedLoops, cost_of
from braid.plan.tree import Tree, joins

if TYPE_CHECKING:
    from braid.optimize import Plan

GRAPH = JoinGraph(
    {"a": 12.0, "b": 6.0, "c": 9.0, "d": 4.0},
    {("a", "b"): 0.1, ("b", "c"): 0.2, ("c", "d"): 0.3, ("a", "d"): 0.5},
    window={"a": 1.0, "b": 3.0, "c": 2.0, "d": 1.5},
)
SECONDS = 120.0
WARM_UP = 4.0
_WORD = 2**64 - 1

Row = tuple[tuple[int, float, int], ...]
"""Of each member: stream, time, a number of its own."""


class Engine:
    """A plan executed row by row, with what it did counted."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan, self.seed = plan, seed
        self.states: dict[Tree, list[Row]] = {node: [] for node in plan.probes}
        self.above = {child: join for join in joins(plan.shape) for child in join.children}
        self.windows = [float(GRAPH.windows[name]) for name in GRAPH.streams]
        numbered = list(enumerate(GRAPH.streams))
        self.selectivity = {
            (i, j): GRAPH.selectivity_of(one, other)
            for i, one in numbered
            for j, other in numbered
        }
        self.counts: Counter[str] = Counter()
        self.sizes = 0

    def come(self, node: Tree, row: Row, now: float) -> None:
        """A new row of an input: kept, and joined with the other inputs of its join."""
        self.states[node].append(row)
        self.counts["insert"] += 1
        rows = [row]
        for other in self.plan.probes[node]:
            self.purge(other, now)
            self.counts["search"] += len(rows)
            rows = [made for one in rows for made in self.matches(one, other)]
            self.counts["match"] += len(rows)
        join = self.above[node]
        if join in self.above:
            for made in rows:
                self.come(join, made, now)

    def matches(self, row: Row, other: Tree) -> list[Row]:
        return [
            (*row, *candidate)
            for candidate in self.states[other]
            if all(self.join(one, two) for one in row for two in candidate)
        ]

    def join(self, one: tuple[int, float, int], other: tuple[int, float, int]) -> bool:
        """Whether two rows join, drawn once for all that ask."""
        selectivity = self.selectivity[one[0], other[0]]
        if selectivity == 1:
            return True
        lower, upper = min(one[2], other[2]), max(one[2], other[2])
        return spread((self.seed << 48) + (lower << 24) + upper) < selectivity

    def purge(self, node: Tree, now: float) -> None:
        before = len(self.states[node])
        self.states[node] = [
            row
            for row in self.states[node]
            if all(now - at <= self.windows[stream] for stream, at, _ in row)
        ]
        self.counts["delete"] += before - len(self.states[node])

    def measure(self, now: float) -> None:
        for node in self.states:
            self.purge(node, now)
        self.sizes += sum(map(len, self.states.values()))


def spread(number: int) -> float:
    """A number from 0 to 1 for any integer; as if drawn anew for each (splitmix64)."""
    number = (number * 0x9E3779B97F4A7C15) & _WORD
    number = ((number ^ number >> 30) * 0xBF58476D1CE4E5B9) & _WORD
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & _WORD
    return (number ^ number >> 31) / 2**64


@pytest.mark.parametrize(
    ("tree", "orders"),
    [
        ("(a b c d)", "a: b c d; b: a c d; c: d b a; d: a b c"),
        ("((a b) c d)", "(a b): c d; c: (a b) d; d: c (a b)"),
    ],
)
def test_the_models_foresee_what_a_plan_does(tree: str, orders: str) -> None:
    seed = 7
    random = Random(seed)
    # One row at random in each 1 / rate: averages settle sooner than with Poisson arrivals.
    arrivals = [
        ((number + random.random()) / rate, stream)
        for stream, rate in enumerate(GRAPH.rates.values())
        for number in range(int(rate * SECONDS))
    ]
    plan = cost_of(GRAPH, tree, orders)
    engine = Engine(plan, seed)
    measured = 0
    for number, (at, stream) in enumerate(sorted(arrivals)):
        if at < WARM_UP:
            engine.counts.clear()
        elif number % 5 == 0:
            measured += 1
            engine.measure(at)
        engine.come(stream, ((stream, at, number),), at)
    seconds = SECONDS - WARM_UP
    done = {name: count / seconds for name, count in engine.counts.items()}
    for name, model in {
        "insert": IndexProbes(1, 0, 0, 0),
        "delete": IndexProbes(0, 1, 0, 0),
        "search": IndexProbes(0, 0, 1, 0),
        "match": NestedLoops(0, 0, 1),
    }.items():
        foreseen = cost_of(GRAPH, tree, orders, model=model).cpu
        assert done[name] == pytest.approx(foreseen, rel=0.05), name
    assert engine.sizes / measured == pytest.approx(plan.memory, rel=0.05)
