"""What the engine's workers do, and what the cost model foresees that they do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from braid import JoinGraph, cql
from braid.join.plan import make_plan
from braid.model.expression import Column
from braid.optimize import IndexProbes, cost_of
from braid.plan.shape import shape_text
from tests.engine import Engine
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from braid.optimize import Plan

TS = pa.timestamp("us", tz="UTC")
KEYS = {"a": ["x"], "b": ["x", "y"], "c": ["y", "z"], "d": ["z"]}
VALUES = {"x": 400, "y": 300, "z": 100}
RATES = {"a": 60, "b": 40, "c": 50, "d": 30}
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
    schemas = {
        name: pa.schema([*((key, pa.int64()) for key in keys), ("ts", TS)])
        for name, keys in KEYS.items()
    }
    froms = ", ".join(f"{name} [RANGE {windows[name]} SECONDS]" for name in KEYS)
    text = f"SELECT a.x FROM {froms} WHERE a.x = b.x AND b.y = c.y AND c.z = d.z"
    types = {
        Column(number, field.name): field.type
        for number, schema in enumerate(schemas.values())
        for field in schema
    }
    query = cql.bind(text, schemas, event_time="ts")
    chosen = shape_text(plan.tree, plan.orders or None)
    laid = make_plan(query, types, "ts", groups=4, lateness_us=0, plans=[chosen])
    random, counts, sizes = np.random.default_rng(1), Counter[str](), Counter[int]()
    with quick_folder() as folder:
        engine = Engine(laid, folder, workers=1)
        for second in range(BATCHES):
            engine.batch(
                {
                    number: _rows(random, schema, RATES[name], second)
                    for number, (name, schema) in enumerate(schemas.items())
                }
            )
            if second >= WARM_UP:
                for report in engine.reports:
                    for edge in report.edges:
                        counts["asked"] += edge.asked
                        counts["found"] += edge.found
                    for state, ladder in report.ladders.items():
                        sizes[state] += sum(run.rows for run in ladder)
        engine.checkpoint.close()
    count = BATCHES - WARM_UP
    states = {
        laid.rounds.states[state].relation.streams: size / count
        for state, size in sizes.items()
    }
    return Done(counts["asked"] / count, counts["found"] / count, states)


def _rows(random: np.random.Generator, schema: pa.Schema, rate: int, second: int) -> pa.Table:
    at = np.sort(random.integers(second * 1_000_000, (second + 1) * 1_000_000, rate))
    keys = {n: random.integers(0, VALUES[n], rate) for n in schema.names if n != "ts"}
    return pa.table({**keys, "ts": pa.array(at).cast(TS)}, schema=schema)


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
        RATES,
        {
            ("a", "b"): 1 / VALUES["x"],
            ("b", "c"): 1 / VALUES["y"],
            ("c", "d"): 1 / VALUES["z"],
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
