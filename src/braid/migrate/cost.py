"""What a change of plan costs, either way, on top of what the new plan costs from then on.

Moving state makes the states that do not go over. A join renews what it makes as often as its
members' windows pass; so to make all of it once, it has as much to do as in the time between
two renewals. What is fed comes through a shuffle besides. Along the parallel track the old plan
runs on for a window.

These are Equations 12.1 to 12.5 of Zhu's dissertation, for the engine's costs: the price of a
search and of its matches takes the place of that of looking at all pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.migrate.change import Way
from braid.optimize.cost_of import as_part
from braid.optimize.estimate import Estimator
from braid.plan.tree import joins, leaves

if TYPE_CHECKING:
    from collections.abc import Iterable

    from braid.migrate.change import Start
    from braid.model.join_graph import JoinGraph
    from braid.optimize.cost_model import CostModel


def cost_of_change(start: Start, graph: JoinGraph, model: CostModel) -> float:
    """What a change costs, in the unit of the model's constants; the graph's is that of time.

    Streams of the graph are numbered as in the query.
    """
    estimator = Estimator(graph, model, cartesian=False)
    rounds = start.both.rounds
    if start.way is Way.PARALLEL_TRACK:
        cpu = max(as_part(estimator, tree).cpu for tree in rounds.trees[:-1])
        return max(graph.windows.values()) * cpu
    sizes = estimator.sizes
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
