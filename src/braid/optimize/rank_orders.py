"""Optimal probe orders over an acyclic join graph, after Ibaraki and Kameda.

A sequence of probes multiplies the rows that run through it by its *growth*, and makes so many
rows on the way for each that comes in: its *cost*. Of two sequences that may trade places, the
one of lower *rank*, (growth - 1) / cost, should come first. An input may be probed only after
the one that joins it to what is known, so there is a tree of inputs below every origin. Where
an input ranks above one that must come after it, both are merged into one sequence with a rank
of its own, until ranks rise along every branch. Then branches are merged by rank, and sequences
are taken apart again.

The branch below an input depends on where it is entered from and not on the origin. So each is
ranked once for both directions of its edge, and all origins share it.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from braid.optimize.cardinality import Streams


class Probes(NamedTuple):
    """Inputs that are probed directly after one another."""

    inputs: tuple[Streams, ...]
    growth: float
    cost: float
    rank: float

    @classmethod
    def of(cls, inputs: tuple[Streams, ...], growth: float, cost: float) -> Probes:
        """A sequence with its rank; if no row comes out of it, nothing should be before it."""
        return cls(inputs, growth, cost, (growth - 1.0) / cost if cost else -math.inf)

    def then(self, after: Probes) -> Probes:
        """These probes and others, as one sequence."""
        cost = self.cost + self.growth * after.cost
        return Probes.of(self.inputs + after.inputs, self.growth * after.growth, cost)


def rank_orders(
    tree: Mapping[Streams, Sequence[Streams]], growth: Callable[[Streams, Streams], float]
) -> dict[Streams, tuple[Streams, ...]]:
    """For each input of a join, the order in which its rows should probe the others.

    `tree` has every input's neighbours. `growth(known, entry)` is how many rows of an input
    join one row that knows its neighbour.
    """
    branches: dict[tuple[Streams, Streams], list[Probes]] = {}

    def branch(known: Streams, entry: Streams) -> list[Probes]:
        found = branches.get((known, entry))
        if found is None:
            rows = growth(known, entry)
            below = [branch(entry, other) for other in tree[entry] if other != known]
            found = head_branch(Probes.of((entry,), rows, rows), merge_branches(below))
            branches[known, entry] = found
        return found

    return {
        origin: _taken_apart(merge_branches([branch(origin, other) for other in others]))
        for origin, others in tree.items()
    }


def merge_branches(branches: Sequence[list[Probes]]) -> list[Probes]:
    """One sequence of several, by rank; each is sorted already, and stays in its order."""
    if len(branches) == 1:
        return branches[0]
    return sorted([each for branch in branches for each in branch], key=attrgetter("rank"))


def head_branch(head: Probes, below: list[Probes]) -> list[Probes]:
    """A branch with its first probe, merged with those that rank lower but must come later."""
    place = 0
    while place < len(below) and below[place].rank < head.rank:
        head = head.then(below[place])
        place += 1
    return [head, *below[place:]]


def _taken_apart(sequences: Sequence[Probes]) -> tuple[Streams, ...]:
    return tuple(each for sequence in sequences for each in sequence.inputs)
