"""What the engine's workers do, and what the cost model foresees that they do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import pytest

from braid.optimize import IndexProbes, cost_of
from tests.oracle.random_plans import LONGEST_S, random_plans, rank_correlation
from tests.oracle.steady import CHAIN
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from braid.state.runs import Section
    from tests.oracle.steady import Steady

SEARCH, MATCH = IndexProbes(0, 0, 1, 0, 0), IndexProbes(0, 0, 0, 1, 0)
MODEL = IndexProbes(lag=1.0)  # a batch


@dataclass
class Done:
    """What happened per batch, once windows are full."""

    inserts: float
    searches: float
    matches: float
    memory: float

    @property
    def operations(self) -> float:
        """What is kept is purged in its time."""
        return 2 * self.inserts + self.searches + self.matches


def executed(
    streams: Steady, windows: dict[str, int], plan: str, warm_up: int, count: int
) -> Done:
    """Run a plan on the engine's workers; a batch is a second."""
    laid = streams.plan(windows, plan)
    counts, sizes = Counter[str](), Counter[int]()
    logged: set[Section] = set()
    with quick_folder() as folder:
        for second, engine in enumerate(streams.run(laid, folder, warm_up + count)):
            new = engine.commit.sections() - logged
            logged |= new
            if second < warm_up:
                continue
            counts["inserted"] += sum(section.rows for section in new)
            for report in engine.reports:
                for edge in report.edges:
                    counts["asked"] += edge.asked
                    counts["found"] += edge.found
                for state, ladder in report.ladders.items():
                    sizes[state] += sum(run.rows for run in ladder)
    done = (counts[name] / count for name in ("inserted", "asked", "found"))
    return Done(*done, sizes.total() / count)


@pytest.mark.parametrize(
    ("tree", "windows"),
    [
        ("(a b c d)", {"a": 8, "b": 8, "c": 8, "d": 8}),
        ("((a b c) d)", {"a": 4, "b": 8, "c": 6, "d": 8}),
        ("((a b) (c d))", {"a": 8, "b": 4, "c": 5, "d": 8}),
    ],
)
def test_searches_matches_and_states_are_as_foreseen(
    tree: str, windows: dict[str, int]
) -> None:
    plan = cost_of(CHAIN.graph(windows), tree, model=MODEL, cartesian=False)
    done = executed(CHAIN, windows, plan.text, warm_up=14, count=12)
    searches = cost_of(CHAIN.graph(windows), tree, plan.orders, model=SEARCH).cpu
    matches = cost_of(CHAIN.graph(windows), tree, plan.orders, model=MATCH).cpu
    assert done.searches == pytest.approx(searches, rel=0.05)
    assert done.matches == pytest.approx(matches, rel=0.05)
    assert done.memory == pytest.approx(plan.memory, rel=0.15)


def test_memory_and_the_ranks_of_random_plans_are_as_foreseen() -> None:
    """Whether ranks hold by what operations take in seconds too is for `bench.costs`."""
    foreseen, done = [], []
    for plan in random_plans(Random(1), CHAIN, 12, values=(30, 1500)):
        costs = plan.costs(MODEL)
        ran = executed(plan.streams, plan.windows, plan.text, warm_up=LONGEST_S + 3, count=8)
        assert ran.memory == pytest.approx(costs.memory, rel=0.15), plan
        foreseen.append(costs.cpu)
        done.append(ran.operations)
    assert max(done) > 5 * min(done), "or ranks would tell little"
    assert rank_correlation(foreseen, done) >= 0.9
