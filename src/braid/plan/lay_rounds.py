"""From trees of joins to the rounds that execute them; `braid.plan.rounds` has the words.

Joins are planned from the root down, so that each knows the ports that its results go to. Which
states a join keeps, and in which rounds its cascades run, is known before that, from the bottom
up. While a run changes from one tree to another, both are there side by side: each has states
and ports of its own, and spaces too, unless all meet under one key; a grouping is there once.
Nor do all workers need the same tree, where all meet under one key.

The second may be *fed* by the first. What the first has of the same rows by the same keys can
be taken over from it in the end, as it is; all other states are made anew, from rows that the
first has. So a stream that such a state needs does not come from its source, but from the round
in which the first tree keeps it, shuffled by another key. Until the end, joins whose results
are there already are *idle*, and so is the last one, whose results the first tree shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from braid.model.expression import GROUPED, Column, columns_of
from braid.model.query import time_column
from braid.plan.rounds import (
    FIRST,
    Port,
    ProbeStep,
    Relation,
    Round,
    Rounds,
    Segment,
    Shape,
    Space,
    State,
)
from braid.plan.tree import Join, Tree, connects, joins, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from braid.model.query import Query, TimeNames


def lay_rounds(
    query: Query, shapes: Sequence[Shape], event_time: TimeNames, *, feeds: bool = False
) -> Rounds:
    """Plan the rounds of trees; children without an order get one that needs few shuffles.

    Of two trees, the second may get rows that the first `feeds` it with.
    """
    return _Planner(query, shapes, event_time, feeds=feeds).plan()


@dataclass(slots=True)
class _Draft:
    """A round in the making."""

    ports: list[Port] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    carried: list[tuple[int, int]] = field(default_factory=list)
    fed: list[tuple[int, int]] = field(default_factory=list)

    def add(self, port: Port) -> int:
        """The number of a new port."""
        self.ports.append(port)
        return len(self.ports) - 1


@dataclass(frozen=True, slots=True)
class _PlannedProbe:
    """A step before its ports are known: a child, the keys that arrange it, all shared ones."""

    child: int
    keys: tuple[int, ...]
    shared: tuple[int, ...]


_Cascade = tuple[tuple[_PlannedProbe, ...], ...]
"""The probes of one child's rows, parted where the key changes."""

_Arrangement = tuple[int, tuple[int, ...]]
"""A child, and the keys that its rows are arranged by."""


class _Planner:
    """Plans joins from the root down, so that each knows the ports that its results go to."""

    def __init__(
        self, query: Query, shapes: Sequence[Shape], event_time: TimeNames, *, feeds: bool
    ) -> None:
        self.query, self.shapes, self.event_time = query, shapes, event_time
        self.joins = [join for shape in shapes for join in joins(shape.tree)]
        counts = [sum(1 for _ in joins(shape.tree)) for shape in shapes]
        self.shape_of = [place for place, count in enumerate(counts) for _ in range(count)]
        self.roots = [sum(counts[: place + 1]) - 1 for place in range(len(shapes))]
        self.cascades = [self._cascades(number) for number in range(len(self.joins))]
        self.fed: set[tuple[int, Tree]] = set()  # joins, and those of their children
        self.idle: set[int] = set()
        if feeds:
            self._rest(self.roots[1])
        self.clusters = self._clusters()
        self.begins = self._begins()
        self.spaces: list[Space] = []
        self.states: list[State] = []
        self.drafts = [_Draft() for _ in range(max(map(self._end, range(len(self.joins)))) + 1)]
        self.wanted: dict[int, list[tuple[int, int]]] = {}  # (round, port) to send results to
        self.onward: dict[tuple[int, int, int], int] = {}
        self.fed_states: set[int] = set()
        self.fed_ports: list[tuple[int, int, int]] = []  # stream, round, port
        self.kept_at: dict[int, tuple[int, int]] = {}  # by stream: the first tree's round, port

    def plan(self) -> Rounds:
        grouped, port = self._lay_grouping()
        for number in reversed(range(len(self.joins))):
            self._lay(number)
        for stream, target, goal in self.fed_ports:
            at, source = self.kept_at[stream]
            self.drafts[at].fed.append((source, self._onward(at, target, goal)))
        rounds = tuple(
            Round(
                tuple(draft.ports),
                tuple(sorted(draft.segments, key=lambda segment: segment.join)),
                tuple(draft.carried),
                tuple(draft.fed),
            )
            for draft in self.drafts
        )
        trees = tuple(shape.tree for shape in self.shapes)
        spaces, states = tuple(self.spaces), tuple(self.states)
        fed = frozenset(self.fed_states)
        return Rounds(trees, spaces, states, rounds, grouped, port, fed)

    def _number(self, parent: int, node: Join) -> int:
        """The number of a join below another."""
        first = self.shape_of.index(self.shape_of[parent])
        return self.joins.index(node, first)

    # Which states each child probes, in which order, and under which keys.

    def _cascades(self, number: int) -> list[_Cascade]:
        join, orders = self.joins[number], self.shapes[self.shape_of[number]].orders
        everywhere = self._shared(join.children)
        arranged: set[_Arrangement] = set()
        return [
            self._cascade(join, place, orders.get(child), everywhere, arranged)
            for place, child in enumerate(join.children)
        ]

    def _cascade(
        self,
        join: Join,
        origin: int,
        given: tuple[Tree, ...] | None,
        everywhere: tuple[int, ...],
        arranged: set[_Arrangement],
    ) -> _Cascade:
        hops: list[list[_PlannedProbe]] = []
        known, left = [origin], [c for c in range(len(join.children)) if c != origin]
        while left:
            here = hops[-1][-1].keys if hops else None
            nodes = [join.children[child] for child in known]
            probes = []
            for child in left if given is None else [self._next(join, given, known)]:
                shared = self._shared_with(nodes, join.children[child])
                keys = everywhere or _choose(shared, here, child, arranged)
                probes.append(_PlannedProbe(child, keys, shared))
            # The first that needs no shuffle; else the first that shares a key.
            probe = min(probes, key=lambda p: (p.keys != here, not p.shared))
            if hops and probe.keys == here:
                hops[-1].append(probe)
            else:
                hops.append([probe])
            arranged.add((probe.child, probe.keys))
            known.append(probe.child)
            left.remove(probe.child)
        return tuple(tuple(hop) for hop in hops)

    @staticmethod
    def _next(join: Join, given: tuple[Tree, ...], known: Sequence[int]) -> int:
        return join.children.index(given[len(known) - 1])

    def _shared(self, nodes: Sequence[Tree]) -> tuple[int, ...]:
        """The keys that all of some nodes have a part in."""
        return tuple(
            number
            for number, key in enumerate(self.query.keys)
            if all(connects(key, node) for node in nodes)
        )

    def _shared_with(self, known: Sequence[Tree], node: Tree) -> tuple[int, ...]:
        """The keys between what is known and one more node."""
        return tuple(
            number
            for number, key in enumerate(self.query.keys)
            if connects(key, node) and any(connects(key, other) for other in known)
        )

    # Which of the second tree's states are made anew.

    def _rest(self, number: int) -> None:
        """Let a join be idle, and that be made of its children which is not there already."""
        self.idle.add(number)
        for child in self.joins[number].children:
            is_kept = self._is_kept(number, child)
            if not is_kept:
                self.fed.add((number, child))
            if isinstance(child, Join):
                (self._rest if is_kept else self._feed)(self._number(number, child))

    def _feed(self, number: int) -> None:
        """Let all that a join makes be made anew, and what it needs for that.

        Two rows meet when the later of them comes: so one child at least must come anew.
        """
        children = self.joins[number].children
        fed = [child for child in children if not self._is_complete(number, child)]
        for child in fed or sorted(children, key=lambda child: isinstance(child, Join))[:1]:
            self.fed.add((number, child))
            if isinstance(child, Join):
                self._feed(self._number(number, child))

    def _is_complete(self, number: int, child: Tree) -> bool:
        """Whether the first tree keeps a child, and all that makes it up."""
        if not self._is_kept(number, child):
            return False
        if not isinstance(child, Join):
            return True
        below = self._number(number, child)
        return all(self._is_complete(below, each) for each in child.children)

    def _is_kept(self, number: int, child: Tree) -> bool:
        """Whether the first tree has all states of a child."""
        streams, place = frozenset(leaves(child)), self.joins[number].children.index(child)
        mine = {(streams, keys) for at, keys in self._probed(number) if at == place}
        return mine <= self._kept_by_first

    @cached_property
    def _kept_by_first(self) -> set[tuple[frozenset[int], tuple[int, ...]]]:
        """The streams and keys of all states of the first tree."""
        return {
            (frozenset(leaves(self.joins[number].children[place])), keys)
            for number in range(self.roots[0] + 1)
            for place, keys in self._probed(number)
        }

    def _probed(self, number: int) -> set[_Arrangement]:
        """The children of a join that are kept, and by which keys."""
        cascades = self.cascades[number]
        return {(p.child, p.keys) for cascade in cascades for hop in cascade for p in hop}

    # Which joins meet in one place, and in which round each begins and ends.

    def _only_keys(self, number: int) -> tuple[int, ...] | None:
        """The keys that all probes of a join go by, if they do."""
        cascades = self.cascades[number]
        keys = {probe.keys for cascade in cascades for hop in cascade for probe in hop}
        return keys.pop() if len(keys) == 1 else None

    def _clusters(self) -> list[int]:
        """The first join of each join's cluster."""
        clusters: list[int] = []
        for number in range(len(self.joins)):
            clusters.append(number)
            keys = self._only_keys(number)
            for below in self._below(number):
                if keys is not None and self._only_keys(below) == keys:
                    joined = {clusters[below], clusters[number]}
                    clusters = [min(joined) if c in joined else c for c in clusters]
        everywhere = set(map(self._only_keys, range(len(self.joins))))
        return clusters if None in everywhere or len(everywhere) > 1 else [0] * len(clusters)

    def _below(self, number: int) -> list[int]:
        children = self.joins[number].children
        return [self._number(number, child) for child in children if isinstance(child, Join)]

    def _begins(self) -> list[int]:
        """A cluster begins when all that it needs of others is there."""
        begins = [0] * len(self.joins)
        for number in range(len(self.joins)):
            mates = [n for n, c in enumerate(self.clusters) if c == self.clusters[number]]
            others = [n for n in self._below(number) if n not in mates]
            ends = [begins[n] + max(map(len, self.cascades[n])) for n in others]
            ends += [begins[n] + 1 for n in self._feeders(number)]
            begin = max([begins[number], *ends])
            for mate in mates:
                begins[mate] = begin
        return begins

    def _feeders(self, number: int) -> list[int]:
        """The joins of the first tree that keep the streams which a join is fed with."""
        fed = {node for join, node in self.fed if join == number and isinstance(node, int)}
        return [n for n in range(self.roots[0] + 1) if fed & set(self.joins[n].children)]

    def _end(self, number: int) -> int:
        """The last round that a join needs; one that is idle only takes in what it is fed."""
        if number in self.idle:
            is_fed = any(join == number for join, _ in self.fed)
            return self.begins[number] if is_fed else 0
        return self.begins[number] + max(map(len, self.cascades[number])) - 1

    # Ports, states and segments.

    def _lay_grouping(self) -> tuple[int | None, int | None]:
        """The grouping's state, and its round unless groups are at home in the last join."""
        grouping = self.query.grouping
        if grouping is None:
            return None, None
        columns = (
            FIRST,
            *(Column(GROUPED, f"key {i}") for i in range(len(grouping.keys))),
            *(Column(GROUPED, f"aggregate {i}") for i in range(len(grouping.aggregates))),
        )
        relation = Relation((GROUPED,), columns)
        keys = self._shared(range(len(self.query.streams)))
        # Under any tree, so that a grouping stays where it is when the tree changes.
        if len(keys) == len(self.query.keys) and self._decided_by_group(keys):
            space = self._space(self.roots[0], keys)
            return self._state(State(space, relation)), None
        space = self._space(None, ())
        state = self._state(State(space, relation))
        self.drafts.append(_Draft())
        port = self.drafts[-1].add(Port(space, relation, state=state))
        self.wanted = {root: [(len(self.drafts) - 1, port)] for root in self.roots}
        return state, port

    def _decided_by_group(self, keys: tuple[int, ...]) -> bool:
        """Whether all rows of a group have one join key."""
        assert self.query.grouping is not None, "asked only of grouped queries"
        grouped = {key for key in self.query.grouping.keys if isinstance(key, Column)}
        return bool(keys) and all(grouped & set(self.query.keys[key].columns) for key in keys)

    def _lay(self, number: int) -> None:
        join, begin, cascades = self.joins[number], self.begins[number], self.cascades[number]
        probed, tree = self._probed(number), self.shape_of[number]
        starts = {(child, cascade[0][0].keys) for child, cascade in enumerate(cascades)}
        if number in self.idle:
            probed = {each for each in probed if (number, join.children[each[0]]) in self.fed}
            starts, cascades = set(), []
        states: dict[_Arrangement, int] = {}
        fresh: dict[tuple[int, _Arrangement], int] = {}
        for arrangement in sorted(probed | starts):
            child, keys = arrangement
            node, space = join.children[child], self._space(number, keys)
            relation = self._relation(leaves(node))
            is_fed = (number, node) in self.fed
            if arrangement in probed:
                states[arrangement] = self._state(State(space, relation, tree=tree))
                if is_fed:
                    self.fed_states.add(states[arrangement])
            stream = node if isinstance(node, int) and not is_fed else None
            waiting = None
            if self._ordered and stream is not None:
                waiting = self._state(State(space, relation, waits=True, tree=tree))
            made = isinstance(node, Join) and self._is_mate(number, node)
            port = Port(space, relation, stream, states.get(arrangement), waiting, made, tree)
            fresh[begin, arrangement] = self.drafts[begin].add(port)
            if isinstance(node, int):
                if is_fed:
                    self.fed_ports.append((node, begin, fresh[begin, arrangement]))
                elif tree == 0 and arrangement in probed:
                    self.kept_at[node] = begin, fresh[begin, arrangement]
            if isinstance(node, Join):
                goals = self.wanted.setdefault(self._number(number, node), [])
                goals.append((begin, fresh[begin, arrangement]))
            last = begin if number in self.idle else self._last_met(number, arrangement)
            for later in range(begin + 1, last + 1):
                carried = self.drafts[later].add(Port(space, relation, tree=tree))
                self.drafts[later - 1].carried.append((fresh[later - 1, arrangement], carried))
                fresh[later, arrangement] = carried
        for origin in range(len(cascades)):
            self._lay_cascade(number, origin, states, fresh)

    def _is_mate(self, number: int, node: Join) -> bool:
        return self.clusters[self._number(number, node)] == self.clusters[number]

    @property
    def _ordered(self) -> bool:
        return any(stream.history for stream in self.query.streams)

    def _last_met(self, number: int, arrangement: _Arrangement) -> int:
        """The last round in which a batch's own rows of an arrangement matter.

        They do where they are to be met, and where they drive others out of a history.
        """
        node = self.joins[number].children[arrangement[0]]
        always = isinstance(node, int) and self.query.streams[node].history is not None
        return self.begins[number] + max(
            (
                place
                for origin, cascade in enumerate(self.cascades[number])
                for place, hop in enumerate(cascade)
                for probe in hop
                if (probe.child, probe.keys) == arrangement and (probe.child < origin or always)
            ),
            default=0,
        )

    def _lay_cascade(
        self,
        number: int,
        origin: int,
        states: Mapping[_Arrangement, int],
        fresh: Mapping[tuple[int, _Arrangement], int],
    ) -> None:
        join, at = self.joins[number], self.begins[number]
        cascade = self.cascades[number][origin]
        port = fresh[at, (origin, cascade[0][0].keys)]
        known = [join.children[origin]]
        for place, hop in enumerate(cascade):
            steps = []
            for probe in hop:
                arrangement = (probe.child, probe.keys)
                node = join.children[probe.child]
                step = self._step(known, node, probe, states[arrangement])
                news, meets = fresh.get((at, arrangement)), probe.child < origin
                steps.append(replace(step, news=news, sees_new_rows=meets))
                known.append(node)
            into: int | None = None
            to: tuple[int, ...]
            if place < len(cascade) - 1:
                space = self._space(number, cascade[place + 1][0].keys)
                streams = tuple(stream for node in known for stream in leaves(node))
                half_made = Port(space, self._relation(streams), tree=self.shape_of[number])
                to = (self.drafts[at + 1].add(half_made),)
            else:
                goals = self.wanted.get(number, [])
                into = next((goal for target, goal in goals if target == at), None)
                to = tuple(self._onward(at, *goal) for goal in goals if goal[0] > at)
            made = Segment(number, origin, port, tuple(steps), to, into)
            self.drafts[at].segments.append(made)
            if place < len(cascade) - 1:
                (port,) = to
                at += 1

    def _onward(self, at: int, target: int, port: int) -> int:
        """The port of the next round on the way to a port of a later one."""
        if at + 1 == target:
            return port
        if (at, target, port) not in self.onward:
            goal = self.drafts[target].ports[port]
            onward = Port(goal.space, goal.relation, tree=goal.tree)
            first = self.drafts[at + 1].add(onward)
            second = self._onward(at + 1, target, port)
            self.drafts[at + 1].carried.append((first, second))
            self.onward[at, target, port] = first
        return self.onward[at, target, port]

    def _step(
        self, known: Sequence[Tree], node: Tree, probe: _PlannedProbe, state: int
    ) -> ProbeStep:
        before = {stream for other in known for stream in leaves(other)}
        inside = set(leaves(node))
        after = before | inside

        def comes_true(streams: set[int]) -> bool:
            return streams <= after and not streams <= before and not streams <= inside

        def pairs(keys: Iterator[int]) -> tuple[tuple[Column, Column], ...]:
            return tuple((self._one_of(known, key), self._one_of([node], key)) for key in keys)

        return ProbeStep(
            state=state,
            news=None,
            sees_new_rows=False,
            key=pairs(iter(probe.keys)),
            equal=pairs(key for key in probe.shared if key not in probe.keys),
            conditions=tuple(
                condition
                for condition in self.query.conditions
                if comes_true({column.stream for column in columns_of(condition)})
            ),
            bounds=tuple(
                bound for bound in self.query.bounds if comes_true({bound.stream, bound.other})
            ),
        )

    def _one_of(self, nodes: Sequence[Tree], key: int) -> Column:
        """One column of a key among some nodes' streams: the others are equal to it.

        It is that of the first stream in FROM, so whoever joins whom in which order, all agree
        on the column that is carried along.
        """
        streams = sorted(stream for node in nodes for stream in leaves(node))
        return next(
            Column(stream, name)
            for stream in streams
            if (name := self.query.keys[key].of(stream)) is not None
        )

    def _relation(self, streams: tuple[int, ...]) -> Relation:
        """Rows of some streams, in an order that is the same in all trees."""
        streams = tuple(sorted(streams))
        return Relation(streams, tuple(dict.fromkeys(self._needed(streams))))

    def _needed(self, streams: tuple[int, ...]) -> Iterator[Column]:
        """The columns of some joined streams that something is still to be done with."""
        inside, query = set(streams), self.query
        for number, key in enumerate(query.keys):
            if key.streams & inside and not key.streams <= inside:
                yield self._one_of(streams, number)
        if len(streams) == 1 and (history := query.streams[streams[0]].history):
            yield from (Column(streams[0], name) for name in history.partition)
        for bound in query.bounds:
            if len({bound.stream, bound.other} & inside) == 1:
                (stream,) = {bound.stream, bound.other} & inside
                yield time_column(self.event_time, stream)
        for condition in query.conditions:
            columns = list(columns_of(condition))
            if not {column.stream for column in columns} <= inside:
                yield from (column for column in columns if column.stream in inside)
        for expression in query.results():
            yield from (c for c in columns_of(expression) if c.stream in inside)

    def _space(self, join: int | None, keys: tuple[int, ...]) -> int:
        space = Space(None if join is None else self.clusters[join], keys)
        if space not in self.spaces:
            self.spaces.append(space)
        return self.spaces.index(space)

    def _state(self, state: State) -> int:
        self.states.append(state)
        return len(self.states) - 1


def _choose(
    shared: tuple[int, ...],
    here: tuple[int, ...] | None,
    child: int,
    arranged: set[_Arrangement],
) -> tuple[int, ...]:
    """The keys to arrange a child by: those at hand, or it is arranged by, or all shared."""
    if here and set(here) <= set(shared):
        return here
    known = sorted(keys for other, keys in arranged if other == child and keys)
    return next((keys for keys in known if set(keys) <= set(shared)), shared)
