"""What the engine's workers do, and what the cost model foresees that they do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from braid import JoinGraph
from braid.optimize import IndexProbes, cost_of
from tests.oracle.steady import CHAIN
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from braid.optimize import Plan

SEARCH, MATCH = IndexProbes(0, 0, 1, 0), IndexProbes(0, 0, 0, 1)
WARM_UP, BATCHES = 14, 26


@dataclass
class Done:
    """What happened per batch, once windows are full."""

    searches: float
    matches: float
    state_rows: dict[tuple[int, ...], float]


def executed(windows: dict[str, int], plan: Plan) -> Done:
    """Run a plan on the engine's workers; a batch is a second."""
    laid = CHAIN.plan(windows, plan.text)
    counts, sizes = Counter[str](), Counter[int]()
    with quick_folder() as folder:
        for second, engine in enumerate(CHAIN.run(laid, folder, BATCHES)):
            if second >= WARM_UP:
                for report in engine.reports:
                    for edge in report.edges:
                        counts["asked"] += edge.asked
                        counts["found"] += edge.found
                    for state, ladder in report.ladders.items():
                        sizes[state] += sum(run.rows for run in ladder)
    count = BATCHES - WARM_UP
    states = {
        laid.rounds.states[state].relation.streams: size / count
        for state, size in sizes.items()
    }
    return Done(counts["asked"] / count, counts["found"] / count, states)


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
    graph = JoinGraph(
        CHAIN.rates,
        {
            ("a", "b"): 1 / CHAIN.values["x"],
            ("b", "c"): 1 / CHAIN.values["y"],
            ("c", "d"): 1 / CHAIN.values["z"],
        },
        {name: float(window) for name, window in windows.items()},
    )
    model = IndexProbes(lag=1.0)  # a batch
    plan = cost_of(graph, tree, model=model, cartesian=False)
    done = executed(windows, plan)
    searches = cost_of(graph, tree, plan.orders, model=SEARCH).cpu
    matches = cost_of(graph, tree, plan.orders, model=MATCH).cpu
    assert done.searches == pytest.approx(searches, rel=0.05)
    assert done.matches == pytest.approx(matches, rel=0.05)
    # A state that is kept by two keys counts once, as in the model.
    assert sum(done.state_rows.values()) == pytest.approx(plan.memory, rel=0.15)
