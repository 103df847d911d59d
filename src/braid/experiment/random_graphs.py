"""The dissertation's random settings: 100 join graphs for each number of streams.

Its section 8.2 says that rates are of 1 to 100 rows a second, that joins are chosen at random,
and that selectivities are of 0 to 1. It does not say how many joins, how long the window is, or
what budgets there are. Ours: a random tree of joins, and a fifth of all other pairs; a window
of a tenth of a second, in which joins neither die out nor explode as streams are added; and
budgets that are kept by some graphs of every size, but not by all.
"""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import TYPE_CHECKING

from braid.model.join_graph import JoinGraph
from braid.optimize.plan import Budget

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = 100
MOST_STREAMS = 20
BUDGET = Budget(cpu=2_000, memory=100)
"""Operations a second, and rows."""

_WINDOW_S = 0.1
_MORE_JOINS = 0.2


def random_settings(streams: int, count: int = SETTINGS) -> Iterator[JoinGraph]:
    """The same graphs at every call."""
    for number in range(count):
        yield _random_graph(Random(f"{streams} streams, setting {number}"), streams)


def _random_graph(random: Random, streams: int) -> JoinGraph:
    names = [f"s{number}" for number in range(streams)]
    joined = {(names[random.randrange(n)], names[n]) for n in range(1, streams)}
    joined |= {pair for pair in combinations(names, 2) if random.random() < _MORE_JOINS}
    return JoinGraph(
        {name: random.uniform(1, 100) for name in names},
        {pair: random.random() for pair in sorted(joined)},
        _WINDOW_S,
    )
