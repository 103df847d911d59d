"""What a change of plan costs, either way, on top of what the new plan costs from then on.

While a change lasts, both plans run: all rows are sent to the old one as well, and it does with
them as ever. Along the parallel track that is for the longest window, and for as much longer as
rows may be late and streams apart, for the watermark has to pass all that. The new plan is
cheaper meanwhile: states that begin empty have half of their rows on average in the first
window, and half of the matches.

Moving state lasts for as many batches as it is parted into. It makes the states that do not go
over: a join renews what it makes as often as its members' windows pass; so to make all of it
once, it has as much to do as in the time between two renewals. What is fed comes through a
shuffle besides.

These stand in place of Equations 12.1 to 12.7 of Zhu's dissertation, which charge for all pairs
that are looked at (12.1), and for both plans over two windows (12.4, 12.5). Here a search and
its matches have their prices, and a boundary by deadlines lets the old plan go after one
window. That states are matched by name and handed over (12.3) costs next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.optimize.cost_of import as_part
from braid.optimize.estimate import Estimator
from braid.plan.tree import joins, leaves
from braid.record.plan_change import Way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from braid.model.join_graph import JoinGraph
    from braid.optimize.cost_model import CostModel
    from braid.record.plan_change import Start


def _at_once(made: float) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a change depends on besides plans and streams, in the graph's unit of time.

    Rows may be late by `lateness`, and the newest of two streams are `skew` apart. Making
    states that cost so much lasts `filling`; at once, it takes no time of both plans.
    """

    lateness: float = 0.0
    skew: float = 0.0
    filling: Callable[[float], float] = _at_once


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """In the unit of the model's constants: what a change `takes` in all, and in making states.

    It `lasts` so long, in the graph's unit of time.
    """

    takes: float
    making: float
    lasts: float


def cost_of_change(
    start: Start,
    graph: JoinGraph,
    model: CostModel,
    circumstances: Circumstances | None = None,
) -> ChangeCost:
    """What a change costs; streams of the graph are numbered as in the query."""
    around = circumstances or Circumstances()
    estimator = Estimator(graph, model, cartesian=False)
    if start.way is Way.PARALLEL_TRACK:
        longest = max(graph.windows.values())
        making, lasts = 0.0, longest + around.lateness + around.skew
        saved = longest / 2 * _matches_of_fresh(start, estimator, model)
    else:
        making = _making(start, estimator, model)
        lasts, saved = (around.filling(making) if start.fresh else 0.0), 0.0
    old = max(as_part(estimator, tree).cpu for tree in start.both.rounds.trees[:-1])
    twice = old + model.send(sum(graph.rates.values()))
    return ChangeCost(max(0.0, making + lasts * twice - saved), making, lasts)


def _making(start: Start, estimator: Estimator, model: CostModel) -> float:
    """What making the states that do not go over costs."""
    rounds, sizes = start.both.rounds, estimator.sizes
    made = [_bits(rounds.states[state].relation.streams) for state in start.fresh]
    cost = sum(model.keep(sizes.rows(streams)) for streams in made)
    if rounds.fed:
        cost += sum(model.send(sizes.rows(streams)) for streams in made)
    for join in joins(rounds.trees[-1]):
        streams = _bits(leaves(join))
        if streams in made:
            inputs = sorted(_bits(leaves(child)) for child in join.children)
            probes = estimator.ordered(tuple(inputs))
            cost += model.probe(probes.rows, probes.matches) / sizes.turnover(streams)
    return cost


def _matches_of_fresh(start: Start, estimator: Estimator, model: CostModel) -> float:
    """What matches in states that begin empty cost per unit of time, once they are full."""
    rounds = start.both.rounds
    fresh = {_bits(rounds.states[state].relation.streams) for state in start.fresh}
    cost = 0.0
    for join in joins(rounds.trees[-1]):
        inputs = sorted(_bits(leaves(child)) for child in join.children)
        if fresh & set(inputs):
            cost += model.probe(0.0, estimator.ordered(tuple(inputs)).matches)
    return cost


def costs_of_plans(start: Start, graph: JoinGraph, model: CostModel) -> dict[str, float]:
    """What the plan before a change and the one after it cost from then on, by what they do.

    Of several before, it is the one that costs most. Memory is in rows.
    """
    estimator = Estimator(graph, model, cartesian=False)
    *old, new = (as_part(estimator, tree) for tree in start.both.rounds.trees)
    return {
        "cpu": max(part.cpu for part in old),
        "rows": max(part.memory for part in old),
        "new_cpu": new.cpu,
        "new_rows": new.memory,
    }


def _bits(streams: Iterable[int]) -> int:
    return sum(1 << stream for stream in streams)
