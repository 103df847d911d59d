"""Plans that change while they run leave the results as they are, whichever way they change."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.migrate import Way
from braid.plan.tree import all_trees, show_tree
from tests.engine import Engine
from tests.oracle.queries import cases, prepared
from tests.oracle.test_plans_agree_with_duckdb import CAMPAIGN, SLOW, planned
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from braid.plan.tree import Tree
    from tests.oracle.queries import Case


@pytest.mark.parametrize("style", ["plain", "grouped"])
@settings(SLOW, max_examples=40 * CAMPAIGN)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_results_are_exact_through_any_changes_of_plan(
    style: str, data: st.DataObject, seed: int
) -> None:
    case, chance = data.draw(cases(styles=[style])), Random(seed)
    trees = list(all_trees(range(len(case.query.streams))))
    with quick_folder() as folder:
        plan = planned(case, chance.choice(trees))
        engine = Engine(plan, folder, case.workers, case.hash_bits)
        for batch, workers in zip(case.batches(), case.restarts, strict=True):
            if workers:
                engine = engine.restart(workers)
            engine.filled_at_once = chance.choice([1, 3, case.groups])
            if engine.commit.change is None and chance.random() < 0.5:
                engine.change(named(case, chance.choice(trees)), chance.choice(list(Way)))
            engine.batch({n: prepared(case.query.streams[n], t) for n, t in batch.items()})
        engine.batch({}, at_end=True)
        engine.checkpoint.close()
        assert case.counted(engine.all_results()) == case.expected()


def named(case: Case, tree: Tree) -> str:
    return show_tree(tree, [ref.alias for ref in case.query.streams])
