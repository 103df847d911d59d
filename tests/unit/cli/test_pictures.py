"""Plans as pictures: labels stand at the nodes, edges and points that they are of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import matplotlib as mpl
import pyarrow as pa

from braid import cql, optimize
from braid.cli.plan_picture import draw_plan
from braid.cli.plans_picture import draw_plans
from braid.model.join_graph import JoinGraph
from braid.optimize.plan import Budget
from braid.plan.lay_rounds import lay_rounds
from braid.plan.shape import read_shape, shape_text

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
QUERY = (
    "SELECT a.k, count(*) AS n FROM a [RANGE 4 SECONDS SLIDE 1 SECOND], b [RANGE 4 SECONDS], "
    "c [RANGE 8 SECONDS] WHERE a.k = b.k AND b.v = c.v GROUP BY a.k"
)
AS_TEXT = {"svg.fonttype": "none"}


def test_a_join_has_its_probes_and_an_edge_its_shuffle(tmp_path: Path) -> None:
    query = cql.bind(QUERY, dict.fromkeys("abc", SCHEMA), event_time="ts")
    rounds = lay_rounds(query, [read_shape(query, shape_text(None, None))], "ts")
    with mpl.rc_context(AS_TEXT):
        draw_plan(query, rounds, tmp_path / "plan.svg")
    drawn = (tmp_path / "plan.svg").read_text()
    for label in ("(a b) → c by v", "a → b by k", "shuffled in round 2", "GROUP BY a.k"):
        assert label in drawn, label
    for loose in (">probes<", ">shuffles<", ">groups<"):
        assert loose not in drawn, loose


def test_plans_of_the_skyline_have_their_names(tmp_path: Path) -> None:
    pairs = {("a", "b"): 0.001, ("b", "c"): 0.1, ("a", "c"): 0.1}
    graph = JoinGraph({"a": 10, "b": 20, "c": 400}, pairs, 10)
    found = optimize.skyline(graph)
    with mpl.rc_context(AS_TEXT):
        draw_plans({"best": found.plans[0]}, found, Budget(), tmp_path / "plans.svg")
    drawn = (tmp_path / "plans.svg").read_text()
    for plan in (found.plans[0], found.plans[-1]):
        assert plan.tree in drawn


def test_outliers_do_not_crush_the_plans_that_matter_whose_names_stand_apart(
    tmp_path: Path,
) -> None:
    pairs = {("a", "b"): 0.02, ("b", "c"): 0.002, ("c", "d"): 0.05, ("d", "e"): 0.5}
    graph = JoinGraph({"a": 20, "b": 2000, "c": 20, "d": 20, "e": 1}, pairs, 50)
    found = optimize.skyline(graph)
    assert max(memory for _, memory in found.seen) > 1000 * max(p.memory for p in found.plans)
    with mpl.rc_context(AS_TEXT):
        draw_plans({"best": found.plans[0]}, found, Budget(), tmp_path / "plans.svg")
    drawn = (tmp_path / "plans.svg").read_text()
    assert re.search(r">plans looked at; \d+ beyond<", drawn)
    by_memory = sorted(found.plans, key=lambda plan: plan.memory)
    assert len(by_memory) == 6
    for number, plan in enumerate(by_memory, start=1):
        assert f">{number}<" in drawn, "at its point"
        assert f">{number}  {plan.tree}<" in drawn, "in the list"
