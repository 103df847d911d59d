"""Results are exact, whatever is pushed out of memory, cleaned up, and when."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.join.chores import Chores
from braid.plan.tree import all_trees, default_tree
from tests.engine import Engine
from tests.oracle.answers import prepared
from tests.oracle.queries import Case, cases
from tests.oracle.test_plans_agree_with_duckdb import CAMPAIGN, SLOW, planned
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from collections import Counter

    from braid.join.plan import JoinPlan

ALL = 1 << 60


def random_chores(chance: Random, plan: JoinPlan, defers: bool, memory: int | None) -> Chores:
    """A hostile order: any groups of any space may go, and some may be cleaned up."""
    spill = {}
    for space in range(len(plan.rounds.spaces)):
        if chance.random() < 0.4:
            first = chance.randrange(plan.groups)
            spill[space] = ((first, chance.randint(first + 1, plan.groups)),)
    return Chores(
        defers=defers,
        spill=spill,
        clean_bytes=chance.choice([0, 0, 1, 200, ALL]),
        memory_bytes=memory,
    )


def results(
    case: Case, plan: JoinPlan, chance: Random, defers: bool
) -> tuple[Counter[tuple[Any, ...]], int, int]:
    """All results; how many of them were owed; and how often a group was pushed out."""
    memory = chance.choice([0, 500, 3000, None])
    owed = pushed = 0
    with quick_folder() as folder:
        engine = Engine(plan, folder, case.workers, case.hash_bits)
        for batch, workers in zip(case.batches(), case.restarts, strict=True):
            engine.chores = Chores(defers=defers, memory_bytes=memory)
            if workers:
                engine = engine.restart(workers)
            rows = {n: prepared(case.query.streams[n], table) for n, table in batch.items()}
            chores = {
                worker: random_chores(chance, plan, defers, memory)
                for worker in range(engine.workers)
            }
            engine.batch(rows, chores=chores)
            owed += sum(report.cleaned_rows for report in engine.reports)
            accounts = [a for report in engine.reports for a in report.overflowed.values()]
            pushed += sum(account.spilled_groups for account in accounts)
        clean = {w: Chores(defers, {}, ALL, memory) for w in range(engine.workers)}
        while any(a.owing_bytes for r in engine.reports for a in r.overflowed.values()):
            engine.batch({}, chores=clean)
            owed += sum(report.cleaned_rows for report in engine.reports)
        engine.batch({}, at_end=True)
        engine.checkpoint.close()
        return case.counted(engine.all_results()), owed, pushed


@pytest.mark.parametrize("defers", [True, False], ids=["defer", "probe"])
@pytest.mark.parametrize("style", ["plain", "history", "grouped"])
@settings(SLOW, max_examples=60 * CAMPAIGN)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_results_are_exact_whatever_is_pushed_out(
    style: str, defers: bool, data: st.DataObject, seed: int
) -> None:
    case = data.draw(cases(styles=[style]))
    chance = Random(seed)
    trees = list(all_trees(range(len(case.query.streams))))
    tree = default_tree(case.query) if style == "history" else chance.choice(trees)
    found, _, _ = results(case, planned(case, tree), chance, defers)
    assert found == case.expected()
