"""The experiments of Zhu's dissertation on optimizers: chapter 8.

The four sets of Table 8.1 are looked at through the cost models; the dissertation ran them. The
comparison of strategies is made as there, on graphs as its section 8.2 describes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean, median
from time import perf_counter
from typing import TYPE_CHECKING

from braid.experiment.random_graphs import BUDGET, MOST_STREAMS, SETTINGS, random_settings
from braid.experiment.study import Study
from braid.experiment.zhu_pictures import draw_distributions, draw_sets, draw_strategies
from braid.model.join_graph import JoinGraph
from braid.optimize import (
    Plan,
    Skyline,
    bjtree_init,
    cost_of,
    exhaustive,
    min_state,
    mjoin_init,
    skyline,
)
from braid.optimize.cardinality import Cardinalities
from braid.plan.tree import Tree, leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from braid.experiment.setup import Rows

_SOURCE = "Zhu, Dynamic Optimization and Migration of Continuous Queries"


# Table 8.1 and Figures 8.1 to 8.9.

SETS = {
    1: JoinGraph({"a": 20, "b": 20, "c": 20}, {("a", "b"): 0.05, ("b", "c"): 0.5}, 5.0),
    2: JoinGraph({"a": 20, "b": 20, "c": 50}, {("a", "b"): 0.02, ("b", "c"): 0.5}, 15.0),
    3: JoinGraph(
        {"a": 10, "b": 10, "c": 10, "d": 10},
        {("a", "b"): 0.1, ("b", "c"): 0.15, ("c", "d"): 0.1},
        15.0,
    ),
    4: JoinGraph(
        {"a": 20, "b": 20, "c": 20, "d": 20},
        {("a", "b"): 0.02, ("b", "c"): 0.2, ("c", "d"): 0.05},
        50.0,
    ),
}


@dataclass(frozen=True, slots=True)
class SetOfPlans:
    """The plans of one graph: without states, of binary joins, and all that nothing beats."""

    graph: JoinGraph
    mjoin: Plan
    binary: Plan
    best: Skyline


def _price_sets(on_step: Callable[[str], None]) -> dict[int, SetOfPlans]:
    found = {}
    for number, graph in SETS.items():
        on_step(f"set {number}")
        found[number] = SetOfPlans(
            graph,
            cost_of(graph, f"({' '.join(graph.streams)})", cartesian=False),
            min_state(graph, cartesian=False),
            skyline(graph, cartesian=False, seconds=60),
        )
    return found


def pairs_looked_at(graph: JoinGraph, plan: Plan) -> float:
    """Pairs of rows that nested loops look at per second, whether they join or not."""
    sizes = Cardinalities(graph)

    def streams(tree: Tree) -> int:
        return sum(1 << stream for stream in leaves(tree))

    pairs = 0.0
    for origin, others in plan.probes.items():
        known = streams(origin)
        turnover = sizes.turnover(known)
        for other in others:
            pairs += turnover * sizes.rows(known) * sizes.rows(streams(other))
            known |= streams(other)
    return pairs


def _compare_sets(found: Mapping[int, SetOfPlans]) -> Rows:
    rows = []
    said = {
        1: ("both qualified, binary larger", "both qualified"),
        2: ("not said", "throughput 1 : more than 2"),
        3: ("12 MB : over 30 MB", "both qualified"),
        4: ("binary runs out of 30 MB", "binary quickest at first, mjoin slowest"),
    }
    for number, each in found.items():
        memory, cpu = said[number]
        ratio = each.binary.memory / each.mjoin.memory
        rows.append((f"set {number}: state, mjoin : binary tree", f"1 : {ratio:.2f}", memory))
        ratio = each.mjoin.cpu / each.binary.cpu
        looked = pairs_looked_at(each.graph, each.mjoin) / pairs_looked_at(
            each.graph, each.binary
        )
        ours = f"{ratio:.2f} : 1 in operations, {looked:.1f} : 1 in pairs looked at"
        rows.append((f"set {number}: CPU, mjoin : binary tree", ours, cpu))
    each = found[4]
    middle = [p for p in each.best.plans if not p.is_mjoin and not p.is_binary]
    hybrids = ", ".join(plan.tree for plan in middle) or "none"
    rows.append(("set 4: plans between the two", hybrids, "one hybrid, qualified"))
    return rows


_SETS = Study(
    name="optimizer-sets",
    title="What plans of Table 8.1's four sets cost",
    source=f"{_SOURCE}, Table 8.1 and Figures 8.1 to 8.9",
    compute=_price_sets,
    compare=_compare_sets,
    draw=draw_sets,
)


# Figures 8.10 to 8.12.

STRATEGIES: Mapping[str, Callable[..., Plan | None]] = {
    "exhaustive": exhaustive,
    "mjoin-init": mjoin_init,
    "bjtree-init": bjtree_init,
}
EXHAUSTIVE_UP_TO = 8
"""As in the dissertation, whose search ran out of memory beyond that."""


@dataclass(frozen=True, slots=True)
class Trials:
    """What a strategy did with all settings of some number of streams, setting by setting."""

    qualified: tuple[bool, ...]
    taken_ms: tuple[float, ...]

    @property
    def per_cent(self) -> float:
        """How many were qualified."""
        return 100 * mean(self.qualified)


StrategyTrials = dict[str, dict[int, Trials]]
"""By strategy, and by the number of streams."""


def try_strategies(
    on_step: Callable[[str], None], most_streams: int = MOST_STREAMS, count: int = SETTINGS
) -> StrategyTrials:
    """Every strategy on all settings."""
    found: StrategyTrials = {name: {} for name in STRATEGIES}
    for streams in range(3, most_streams + 1):
        on_step(f"{streams} streams")
        graphs = list(random_settings(streams, count))
        for name, strategy in STRATEGIES.items():
            if strategy is not exhaustive or streams <= EXHAUSTIVE_UP_TO:
                found[name][streams] = _try(strategy, graphs)
    return found


def _try(strategy: Callable[..., Plan | None], graphs: Sequence[JoinGraph]) -> Trials:
    qualified, taken = [], []
    for graph in graphs:
        began = perf_counter()
        plan = strategy(graph, cpu=BUDGET.cpu, memory=BUDGET.memory)
        taken.append((perf_counter() - began) * 1000)
        qualified.append(plan is not None and plan.qualified)
    return Trials(tuple(qualified), tuple(taken))


def share_found(found: StrategyTrials, name: str) -> float:
    """Of all settings that have a qualified plan, the part in which a strategy finds one."""
    pairs = [
        (possible, got)
        for streams, trials in found["exhaustive"].items()
        for possible, got in zip(trials.qualified, found[name][streams].qualified, strict=True)
    ]
    return sum(got for possible, got in pairs if possible) / sum(p for p, _ in pairs)


def _compare_strategies(found: StrategyTrials) -> Rows:
    rows = []
    for streams in found["mjoin-init"]:
        known = [name for name in STRATEGIES if streams in found[name]]
        ours = ", ".join(f"{found[name][streams].per_cent:.0f}" for name in known)
        what = ", ".join(known)
        rows.append((f"{streams} streams: qualified, % ({what})", ours, "nearly the same"))
    for name in ("mjoin-init", "bjtree-init"):
        share = f"{100 * share_found(found, name):.1f} %"
        rows.append((f"{name}: found, of all that there are", share, "almost all"))
    for name in STRATEGIES:
        last = max(found[name])
        times = found[name][last].taken_ms
        ours = f"{median(times):.1f} ms median, {mean(times):.1f} ms mean"
        paper = "out of memory" if name == "exhaustive" else "polynomial"
        rows.append((f"{name}: time for {last} streams", ours, paper))
    return rows


_STRATEGIES = Study(
    name="optimizer-strategies",
    title="How often strategies find a qualified plan, and in which time",
    source=f"{_SOURCE}, Figures 8.10 to 8.12",
    compute=try_strategies,
    compare=_compare_strategies,
    draw=draw_strategies,
)


# Figures 8.13 to 8.15.

Distributions = dict[int, dict[str, list[Plan]]]
"""By the number of streams and by strategy: the plans of settings in which both qualified."""


def _plans_of_both(on_step: Callable[[str], None]) -> Distributions:
    found: Distributions = {}
    for streams in (3, 5, 10):
        on_step(f"{streams} streams")
        plans: dict[str, list[Plan]] = {"mjoin-init": [], "bjtree-init": []}
        for graph in random_settings(streams):
            pair = (
                mjoin_init(graph, cpu=BUDGET.cpu, memory=BUDGET.memory),
                bjtree_init(graph, cpu=BUDGET.cpu, memory=BUDGET.memory),
            )
            if all(plan.qualified for plan in pair):
                for name, plan in zip(plans, pair, strict=True):
                    plans[name].append(plan)
        found[streams] = plans
    return found


def _compare_plans(found: Distributions) -> Rows:
    rows = []
    for streams, plans in found.items():
        mjoin, binary = plans["mjoin-init"], plans["bjtree-init"]
        for what, cost in (("memory", _memory), ("CPU", _cpu)):
            ratio = mean(map(cost, mjoin)) / mean(map(cost, binary))
            paper = "less" if what == "memory" else "more"
            growing = "mixed" if streams == 3 else f"{paper}, the more streams there are"
            rows.append(
                (
                    f"{streams} streams: {what}, mjoin-init : bjtree-init",
                    f"{ratio:.3f}",
                    growing,
                )
            )
    return rows


def _memory(plan: Plan) -> float:
    return plan.memory


def _cpu(plan: Plan) -> float:
    return plan.cpu


_PLANS = Study(
    name="optimizer-plans",
    title="What the qualified plans of both strategies cost",
    source=f"{_SOURCE}, Figures 8.13 to 8.15",
    compute=_plans_of_both,
    compare=_compare_plans,
    draw=draw_distributions,
)

STUDIES = {each.name: each for each in (_SETS, _STRATEGIES, _PLANS)}
