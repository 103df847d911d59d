"""What every worker must know of a query, and the arithmetic of its windows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.evaluator import type_of
from braid.model.expression import GROUPED
from braid.model.query import UNBOUNDED_US
from braid.model.shown import Shown
from braid.plan.grouped_columns import grouped_types, is_group_key
from braid.plan.lay_rounds import lay_rounds
from braid.plan.shape import read_shape, show_plans, show_shape
from braid.plan.windows import kept_us
from braid.plan.wire import MOST_PORTS, Wire, lay_out
from braid.state.horizon import NO_HORIZON, Horizon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from braid.model.expression import Column
    from braid.model.query import Query, TimeNames
    from braid.plan.rounds import Port, Relation, Rounds, State
    from braid.state.groups import Ranges


@dataclass(frozen=True, repr=False)
class JoinPlan(Shown):
    """A query, laid out for execution; the same for all workers.

    Rows of all groups go through all trees, or by tree, those of the groups in `routes`.
    """

    query: Query
    rounds: Rounds
    wire: Wire
    groups: int
    lateness_us: int
    texts: tuple[str, ...]
    routes: tuple[Ranges, ...] = ()

    def _facts(self) -> dict[str, object]:
        return {"plan": show_plans(self.texts), "groups": self.groups, "query": self.query.text}

    def replanned(
        self, texts: Sequence[str], *, feeds: bool = False, routes: tuple[Ranges, ...] = ()
    ) -> JoinPlan:
        """The same query by other plans, of which the first may feed the second."""
        plan = make_plan(
            self.query,
            self.wire.types,
            self.wire.event_time,
            groups=self.groups,
            lateness_us=self.lateness_us,
            plans=texts,
            feeds=feeds,
        )
        return replace(plan, routes=routes)

    @property
    def streams(self) -> range:
        """The streams' numbers: their places in FROM."""
        return range(len(self.query.streams))

    @cached_property
    def is_ordered(self) -> bool:
        """Whether rows wait until no earlier one can come, as a history needs it."""
        return any(stream.history for stream in self.query.streams)

    @property
    def most_trees(self) -> float:
        """For how many trees there is room at once.

        Where rows meet under several keys, that depends on the trees; no bound is known then.
        """
        if len(self.rounds.join_spaces) > 1:
            return math.inf
        return MOST_PORTS // len(self.streams)

    @property
    def closes(self) -> bool:
        """Whether results for a moment wait until no more row can come for it."""
        return self.is_ordered or self.query.grouping is not None

    def window_us(self, relation: Relation) -> int:
        """The least window of a relation's streams."""
        return min(self.query.streams[stream].window_us for stream in relation.streams)

    @cached_property
    def _kept_us(self) -> tuple[int, ...]:
        return kept_us(self.query)

    def watermark_us(
        self, newest_us: Sequence[int | None], so_far_us: int | None
    ) -> int | None:
        """The time that no more row is expected below, from each stream's newest row.

        A stream that has shown no row yet holds it back; it never falls.
        """
        seen = [newest for newest in newest_us if newest is not None]
        if len(seen) < len(newest_us) or not seen:
            return so_far_us
        reached = min(seen) - self.lateness_us
        return reached if so_far_us is None else max(reached, so_far_us)

    def round_of_space(self, space: int) -> int:
        """The round in which rows are inserted into the states of a space."""
        return min(self.rounds.round_of_state(state) for state in self.states_of(space))

    def states_of(self, space: int) -> list[int]:
        """The numbers of the states of a space."""
        return [n for n, state in enumerate(self.rounds.states) if state.space == space]

    def may_wait(self, space: int) -> bool:
        """Whether rows of a space may join later: their joins are all here, and order is free.

        A join that has no key in common meets in several spaces, and the rows of a history
        come in order.
        """
        cluster = self.rounds.spaces[space].cluster
        spaces = [each for each in self.rounds.spaces if each.cluster == cluster]
        return cluster is not None and len(spaces) == 1 and not self.is_ordered

    def horizon(self, state: State, low_us: int | None) -> Horizon:
        """Which rows of a state are dead once no row comes from below `low_us` any more."""
        if low_us is None:
            return NO_HORIZON
        kept = min(self._kept_us[stream] for stream in state.relation.streams)
        return Horizon(None if kept >= UNBOUNDED_US else low_us - kept, low_us)

    def hashed_slots(self, port: Port) -> tuple[int, ...]:
        """The slots of the key that rows of a port are to be hashed by."""
        layout = self.wire.layout(port)
        if port.relation.streams == (GROUPED,):
            keys = [column for column in layout.columns if is_group_key(column)]
        else:
            keys = [
                next(c for c in layout.columns if c in self.query.keys[key].columns)
                for key in self.rounds.spaces[port.space].keys
            ]
        return tuple(layout.slots[layout.columns.index(column)] for column in keys)

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The schema of results."""
        types = self.wire.types.__getitem__
        return pa.schema([(out.name, type_of(out.value, types)) for out in self.query.output])


def make_plan(
    query: Query,
    types: Mapping[Column, pa.DataType],
    event_time: TimeNames,
    *,
    groups: int,
    lateness_us: int,
    plans: Sequence[str | None] = (None,),
    feeds: bool = False,
) -> JoinPlan:
    """Plan a query; `types` are of all its columns. There are two plans while one replaces one.

    For None we choose one. The first of two may feed the second.
    """
    aliases = [stream.alias for stream in query.streams]
    shapes = [read_shape(query, text) for text in plans]
    rounds = lay_rounds(query, shapes, event_time, feeds=feeds)
    known = {**types, **grouped_types(query, types.__getitem__, event_time)}
    wire = lay_out(query, rounds, known, event_time)
    texts = tuple(show_shape(shape, aliases) for shape in shapes)
    return JoinPlan(query, rounds, wire, groups, lateness_us, texts)
