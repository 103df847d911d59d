"""Random queries of every form, under random plan trees, equal DuckDB's as multisets."""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from braid.model.expression import Column
from braid.plan.join_plan import JoinPlan, make_plan
from braid.plan.tree import Tree, all_trees, default_tree, show_tree
from tests.driven import Driven
from tests.oracle.answers import prepared
from tests.oracle.queries import EVENT_TIME, Case, cases, fixed_case
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from collections import Counter

    import pyarrow as pa

CAMPAIGN = int(os.environ.get("BRAID_CASES", "1"))
"""How many times as many cases as usual; with 20, all trees over five streams."""

SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck))


def planned(case: Case, tree: Tree | None) -> JoinPlan:
    types: dict[Column, pa.DataType] = {}
    for number, ref in enumerate(case.query.streams):
        for field in prepared(ref, case.rows[number].slice(0, 0)).schema:
            types[Column(number, field.name)] = field.type
    aliases = [ref.alias for ref in case.query.streams]
    return make_plan(
        case.query,
        types,
        EVENT_TIME,
        groups=case.groups,
        lateness_us=case.lateness_us,
        plans=[None if tree is None else show_tree(tree, aliases)],
    )


def results(case: Case, plan: JoinPlan) -> Counter[tuple[Any, ...]]:
    """All results of all batches, through restarts and other numbers of workers."""
    with quick_folder() as folder:
        engine = Driven(plan, folder, case.workers, case.hash_bits)
        for rows, workers in zip(case.prepared_batches, case.restarts, strict=True):
            if workers:
                engine = engine.restart(workers)
            engine.batch(rows)
            assert sum(report.late_rows for report in engine.reports) == 0
        engine.batch({}, at_end=True)
        engine.checkpoint.close()
        return case.counted(engine.all_results())


@pytest.mark.parametrize("style", ["plain", "history", "grouped"])
@settings(SLOW, max_examples=100 * CAMPAIGN)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_any_query_under_any_tree_equals_duckdb(
    style: str, data: st.DataObject, seed: int
) -> None:
    case = data.draw(cases(styles=[style]))
    trees = list(all_trees(range(len(case.query.streams))))
    tree = default_tree(case.query) if style == "history" else Random(seed).choice(trees)
    assert results(case, planned(case, tree)) == case.expected()


@pytest.mark.parametrize("streams", [4, 5])
@pytest.mark.parametrize("shape", ["chain", "star", "cycle", "mixed"])
def test_all_trees_of_a_query_give_the_same_results(shape: str, streams: int) -> None:
    case = fixed_case(shape, streams)
    expected = case.expected()
    assert expected
    trees = list(all_trees(range(streams)))
    stride = 1 if streams == 4 else max(1, 20 // CAMPAIGN)
    for tree in trees[::stride]:
        assert results(case, planned(case, tree)) == expected, tree
