"""What plans over one graph cost; every optimizer builds its plans from these parts.

CPU is that of one unit of time: each input of a join keeps its new rows in a state, and probes
the others' states with them. Under a model that goes by keys there may be several states of it,
and rows are sent from one place to the next. Memory is the size of all states.

Both are sums over the joins of a tree, and a join's share depends only on which streams its
inputs hold, not on how these were joined. That is what lets parts of plans be compared on their
own.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from braid.optimize.arrangement import Arrangement, arrange
from braid.optimize.cardinality import Cardinalities, Streams, members
from braid.optimize.cost_model import CostModel, NestedLoops
from braid.optimize.mjoin_ordering import order_inputs
from braid.optimize.plan import Budget, Plan
from braid.plan.tree import Join, Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from braid.model.join_graph import JoinGraph
    from braid.optimize.probe_orders import Ordered

    Orderer = Callable[[Cardinalities, Sequence[Streams], bool], Ordered]


@dataclass(frozen=True, slots=True)
class Part:
    """A stream, or a join of other parts, with the costs of all joins in it.

    What it costs to keep the part's own rows is counted by the join above it.
    """

    streams: Streams
    inputs: tuple[Part, ...] = ()
    cpu: float = 0.0
    memory: float = 0.0

    @property
    def tree(self) -> Tree:
        """The part's shape, inputs in the order of their first streams."""
        if not self.inputs:
            return next(members(self.streams))
        ordered = sorted(self.inputs, key=lambda part: part.streams & -part.streams)
        return Join(tuple(part.tree for part in ordered))


class Estimator:
    """Costs of parts over one graph, under one model; what was computed once is remembered.

    Orders of m-way joins are those of mjoin-ordering, unless another `orderer` is given.
    """

    def __init__(
        self,
        graph: JoinGraph,
        model: CostModel | None = None,
        *,
        cartesian: bool = True,
        orderer: Orderer = order_inputs,
    ) -> None:
        """Remember nothing yet."""
        self.graph, self.model = graph, NestedLoops() if model is None else model
        self.cartesian = cartesian
        self.sizes = Cardinalities(graph)
        self.keys = self.sizes.keys if self.model.by_key else []
        self._orderer = orderer
        self._ordered: dict[tuple[Streams, ...], Ordered] = {}
        self._kept: dict[Streams, float] = {}
        self._memory: dict[Streams, float] = {}

    def leaves(self) -> tuple[Part, ...]:
        """A part for each stream."""
        return tuple(Part(1 << number) for number in range(len(self.graph.streams)))

    @property
    def least_memory(self) -> float:
        """The memory of the streams alone, which every plan needs."""
        return sum(self.memory(leaf.streams) for leaf in self.leaves())

    def join(self, inputs: Sequence[Part]) -> Part:
        """The join of some parts, with its probes ordered."""
        inputs = tuple(sorted(inputs, key=lambda part: part.streams))
        streams = tuple(part.streams for part in inputs)
        cpu = self.own_cpu(streams) + sum(part.cpu for part in inputs)
        memory = self.own_memory(streams) + sum(part.memory for part in inputs)
        return Part(sum(streams), inputs, cpu, memory)

    def own_cpu(self, inputs: tuple[Streams, ...]) -> float:
        """The share of a join itself in the CPU."""
        probes = self.ordered(inputs)
        cpu = self.model.probe(probes.rows, probes.matches)
        if not self.keys:
            return cpu + sum(map(self.keep, inputs))
        arranged = self._arranged(inputs)
        arrivals = np.array([self.sizes.arrivals(each) for each in inputs])
        between = probes.rows - arrivals.sum()
        sent = arranged.sent[0] @ arrivals + (between if arranged.parted[0] else 0.0)
        kept = sum(map(mul, arranged.kept[0], map(self.keep, inputs)))
        return float(cpu + kept + self.model.send(sent))

    def own_memory(self, inputs: tuple[Streams, ...]) -> float:
        """What the states of a join's inputs take."""
        memory = map(self.memory, inputs)
        if not self.keys:
            return sum(memory)
        return float(sum(map(mul, self._arranged(inputs).kept[0], memory)))

    def _arranged(self, inputs: tuple[Streams, ...]) -> Arrangement:
        return arrange(self.keys, np.array([inputs]))

    def keep(self, streams: Streams) -> float:
        """What it costs to keep a state of a part."""
        found = self._kept.get(streams)
        if found is None:
            found = self._kept[streams] = self.model.keep(self.sizes.arrivals(streams))
        return found

    def memory(self, streams: Streams) -> float:
        """What a state of a part takes: bytes if the graph knows them, else rows."""
        found = self._memory.get(streams)
        if found is None:
            sizes, rows = self.sizes, self.sizes.rows(streams)
            held = self.model.held(rows, sizes.arrivals(streams), sizes.window(streams))
            found = self._memory[streams] = held * sizes.row_bytes(streams)
        return found

    def ordered(self, inputs: tuple[Streams, ...]) -> Ordered:
        """The probe orders of a join's inputs."""
        found = self._ordered.get(inputs)
        if found is None:
            found = self._orderer(self.sizes, inputs, self.cartesian)
            self._ordered[inputs] = found
        return found

    def plan(self, part: Part, budget: Budget) -> Plan:
        """A part that joins all streams, as the plan that it stands for."""
        return Plan(
            self.graph.streams,
            part.tree,
            self._probes(part),
            part.cpu,
            part.memory,
            budget.allows(part.cpu, part.memory),
        )

    def _probes(self, part: Part) -> dict[Tree, tuple[Tree, ...]]:
        probes: dict[Tree, tuple[Tree, ...]] = {}
        for each in part.inputs:
            probes |= self._probes(each)
        if part.inputs:
            trees = {each.streams: each.tree for each in part.inputs}
            orders = self.ordered(tuple(each.streams for each in part.inputs)).orders
            for origin, others in orders.items():
                probes[trees[origin]] = tuple(trees[other] for other in others)
        return probes
