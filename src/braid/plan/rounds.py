"""A plan that can be executed: which rows meet where, and in which order.

A *space* is where rows meet under one key, with partition groups of its own. A *state* is what
a join keeps of one of its children, arranged by a space. New rows of a child run through a
*cascade*: they probe the states of the other children one after the other. A cascade parts into
*segments*, within which the key does not change; from one segment to the next its half-made
results are shuffled. A *round* is one shuffle, and all that happens behind it: rows come in by
*ports*, are inserted into states, and probe. A join on one key is a single round.

Joins of a tree that lie one on another and meet under the same key are a *cluster*: they share
a space and a round, and what one makes is there for the next without a shuffle.

The result rule: a result is made by its latest arrival alone. Within a batch the children of a
join arrive in their order, so rows of child i meet this batch's rows of the children before it,
and only older rows of the children behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from braid.model.expression import GROUPED, Column, Expression
from braid.plan.tree import Join, Tree, joins

if TYPE_CHECKING:
    from braid.model.query import TimeBound

FIRST = Column(GROUPED, "first")
"""Of a partial aggregate: the first slide boundary that it counts for; its time is the last."""


@dataclass(frozen=True, slots=True)
class Space:
    """Where rows of a cluster meet that agree in some keys; none for a product of all with all.

    A cluster has the number of its first join; the space of a grouping has none.
    """

    cluster: int | None
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows of one stream or of several joined ones, and those columns that are still needed."""

    streams: tuple[int, ...]
    columns: tuple[Column, ...]

    @property
    def is_joined(self) -> bool:
        """Whether a row stands for several, and so must carry its deadline."""
        return len(self.streams) > 1


@dataclass(frozen=True, slots=True)
class State:
    """What a tree keeps of a relation's rows, in the groups of a space.

    A state that `waits` holds rows back until no earlier one can come.
    """

    space: int
    relation: Relation
    waits: bool = False
    tree: int = 0


@dataclass(frozen=True, slots=True)
class Port:
    """A kind of rows that come into a round.

    Rows of `stream` come straight from the source, those that are `made` come from another join
    of the cluster. They are inserted into `state`, if there is one, when they come; those of an
    ordered query wait in `waiting` first. All that follows is a matter of one `tree`.
    """

    space: int
    relation: Relation
    stream: int | None = None
    state: int | None = None
    waiting: int | None = None
    made: bool = False
    tree: int = 0


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """A probe of one state, by all that has been joined so far.

    The known and the found column of each pair must be equal. `key` pairs are those that the
    space arranges its rows by; a hash that stands for its key has checked them already.
    """

    state: int
    news: int | None  # the port by which this batch's rows of the state come, if they do
    sees_new_rows: bool
    key: tuple[tuple[Column, Column], ...]
    equal: tuple[tuple[Column, Column], ...]
    conditions: tuple[Expression, ...]
    bounds: tuple[TimeBound, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a cascade: rows that came by `port`, through probes, to the next round's ports.

    Or `into` a port of the same round. Without any they are results, or count for groups.
    """

    join: int
    origin: int
    port: int
    steps: tuple[ProbeStep, ...]
    to: tuple[int, ...] = ()
    into: int | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One shuffle and what follows it; `carried` pairs a port with one of the next round.

    So does `fed`: not only what comes by the port goes on, but also what its state has already.
    Segments are in the order of joins: what is made for a port is there before it is needed.
    """

    ports: tuple[Port, ...]
    segments: tuple[Segment, ...]
    carried: tuple[tuple[int, int], ...]
    fed: tuple[tuple[int, int], ...] = ()

    @property
    def sent(self) -> tuple[int, ...]:
        """The ports by which rows are sent into the round; others get what it makes itself."""
        return tuple(number for number, port in enumerate(self.ports) if not port.made)


@dataclass(frozen=True, slots=True)
class Rounds:
    """A plan that can be executed.

    There are several trees while a run changes from one to another, and if workers differ.
    Joins are numbered through all trees, children before parents. `grouped` is the number of
    the grouping's state; partial aggregates come to it by the port `grouped_port` of the last
    round, or need none, where groups are at home in the last join. Of the last tree, `fed`
    are the states that get all their rows from the first.
    """

    trees: tuple[Tree, ...]
    spaces: tuple[Space, ...]
    states: tuple[State, ...]
    rounds: tuple[Round, ...]
    grouped: int | None = None
    grouped_port: int | None = None
    fed: frozenset[int] = frozenset()

    @property
    def joins(self) -> tuple[Join, ...]:
        """All joins, by number."""
        return tuple(join for tree in self.trees for join in joins(tree))

    @property
    def roots(self) -> tuple[int, ...]:
        """The last join of each tree."""
        counts = [sum(1 for _ in joins(tree)) for tree in self.trees]
        return tuple(sum(counts[: place + 1]) - 1 for place in range(len(counts)))

    @property
    def join_spaces(self) -> tuple[int, ...]:
        """The spaces that joins meet in; a single one, where all is joined under one key."""
        spaces = (state.space for n, state in enumerate(self.states) if n != self.grouped)
        return tuple(dict.fromkeys(spaces))

    def tree_of(self, join: int) -> int:
        """The tree that a join is of."""
        return next(place for place, root in enumerate(self.roots) if join <= root)

    def output_state(self, join: int) -> int | None:
        """The state of the same cluster that keeps what a join makes, if there is one."""
        for a_round in self.rounds:
            for segment in a_round.segments:
                if segment.join == join and segment.into is not None:
                    return a_round.ports[segment.into].state
        return None

    def round_of_state(self, state: int) -> int:
        """The round in which rows are inserted into a state."""
        if state == self.grouped:
            return len(self.rounds) - 1
        return next(
            number
            for number, each in enumerate(self.rounds)
            if any(state in (port.state, port.waiting) for port in each.ports)
        )


Orders = Mapping[Tree, tuple[Tree, ...]]
"""For a child of a join, the order in which its rows probe the other children."""


class Shape(NamedTuple):
    """A tree, and the probe orders that someone chose for it."""

    tree: Tree
    orders: Orders
