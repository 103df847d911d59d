"""Results are exact, whatever is pushed out of memory, cleaned up, and when."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.plan.tree import all_trees, default_tree
from braid.record.worker_orders import Share, WorkerOrders
from braid.state.groups import ranges_of
from tests.driven import Driven
from tests.oracle.queries import Case, cases
from tests.oracle.steady import CLIQUE, TS
from tests.oracle.test_plans_agree_with_duckdb import CAMPAIGN, SLOW, planned
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from collections import Counter

    from braid.plan.join_plan import JoinPlan

ALL = 1 << 60


def random_chores(
    chance: Random, plan: JoinPlan, defers: bool, memory: int | None
) -> WorkerOrders:
    """A hostile order: any groups of any space may go, and some may be cleaned up."""
    spill = {}
    for space in range(len(plan.rounds.spaces)):
        if chance.random() < 0.4:
            first = chance.randrange(plan.groups)
            spill[space] = ((first, chance.randint(first + 1, plan.groups)),)
    return WorkerOrders(
        defers=defers,
        spill=spill,
        clean_bytes=chance.choice([0, 0, 1, 200, ALL]),
        memory_bytes=memory,
        share=chance.choice([None, *map(Share, (0, 1, 3, 10)), Share(9, 2, {0: {0: 5.0}})]),
        may_wait=True,
    )


def cleaned_results(engine: Driven) -> int:
    """What clean-ups of the last batch made, in all spaces."""
    accounts = (each for report in engine.reports for each in report.overflowed.values())
    return sum(each.cleaned_results for each in accounts)


def with_workers(case: Case, chance: Random) -> Case:
    """The case on two workers or more, with fewer restarts, so that moves can end."""
    groups = max(case.groups, 2)
    restarts = (chance.choice([0, 0, 0, n and max(2, n)]) for n in case.restarts)
    workers = min(max(2, case.workers), 4, groups)
    return replace(case, groups=groups, workers=workers, restarts=tuple(restarts))


def random_moves(chance: Random, engine: Driven) -> int:
    """Let some groups arrive, and send others away; how many moves began."""
    for move in engine.commit.moves:
        if chance.random() < 0.4:
            engine.arrive(move, with_files=chance.random() < 0.7)
    plan, began = engine.plan, 0
    for space in filter(plan.may_wait, range(len(plan.rounds.spaces))):
        sender, receiver = chance.sample(range(engine.workers), 2)
        marks = np.array(engine.commit.assignments[space]) == sender
        if chance.random() < 0.5:
            marks &= np.array([chance.random() < 0.5 for _ in marks])
        for each in (each for own in engine.commit.generations for each in own):
            if each.space == space:
                marks &= ~each.marks(plan.groups)
        if {sender, receiver} & engine.commit.moving or not marks.any():
            continue
        engine.move(space, ranges_of(marks), sender, receiver)
        began += 1
    return began


def results(
    case: Case, plan: JoinPlan, chance: Random, defers: bool
) -> tuple[Counter[tuple[Any, ...]], int, int, int, int]:
    """All results; how many were owed; groups pushed out, moves, and rows that waited."""
    memory = chance.choice([0, 500, 3000, None])
    owed = pushed = moved = waited = 0
    with quick_folder() as folder:
        engine = Driven(plan, folder, case.workers, case.hash_bits)
        for rows, workers in zip(case.prepared_batches, case.restarts, strict=True):
            engine.worker_orders = WorkerOrders(
                defers=defers, memory_bytes=memory, may_wait=True
            )
            if workers:
                engine = engine.restart(workers)
            moved += random_moves(chance, engine)
            worker_orders = {
                worker: random_chores(chance, plan, defers, memory)
                for worker in set(range(engine.workers)) - engine.commit.moving
            }
            engine.batch(rows, worker_orders=worker_orders)
            waited += sum(each.section.rows for own in engine.commit.waiting for each in own)
            owed += cleaned_results(engine)
            accounts = [a for report in engine.reports for a in report.overflowed.values()]
            pushed += sum(account.spilled_groups for account in accounts)
        while engine.commit.moves or any(engine.commit.waiting):
            for move in engine.commit.moves:
                engine.arrive(move, with_files=True)
            engine.batch({})
        clean = {w: WorkerOrders(defers, {}, ALL, memory) for w in range(engine.workers)}
        while any(a.owing_bytes for r in engine.reports for a in r.overflowed.values()):
            engine.batch({}, worker_orders=clean)
            owed += cleaned_results(engine)
        engine.batch({}, at_end=True)
        engine.checkpoint.close()
        return case.counted(engine.all_results()), owed, pushed, moved, waited


@pytest.mark.parametrize("defers", [True, False], ids=["defer", "probe"])
@pytest.mark.parametrize("style", ["plain", "history", "grouped"])
@settings(SLOW, max_examples=36 * CAMPAIGN)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_results_are_exact_whatever_is_pushed_out(
    style: str, defers: bool, data: st.DataObject, seed: int
) -> None:
    chance = Random(seed)
    case = with_workers(data.draw(cases(styles=[style], most_batches=8)), chance)
    trees = list(all_trees(range(len(case.query.streams))))
    tree = default_tree(case.query) if style == "history" else chance.choice(trees)
    found, *_ = results(case, planned(case, tree), chance, defers)
    assert found == case.expected()


@pytest.mark.parametrize("style", ["plain", "grouped"])
def test_the_random_cases_push_out_owe_and_move(style: str) -> None:
    # Or the law above would say nothing.
    seen = []

    @settings(SLOW, max_examples=24, database=None, derandomize=True)
    @given(case=cases(styles=[style], most_batches=8), seed=st.integers(0, 2**32))
    def run(case: Case, seed: int) -> None:
        chance = Random(seed)
        case = with_workers(case, chance)
        plan = planned(case, default_tree(case.query))
        seen.append(results(case, plan, chance, defers=True)[1:])

    run()
    assert all(sum(counts) > 10 for counts in zip(*seen, strict=True)), seen


def test_what_two_joins_owe_meets_in_the_join_above_them() -> None:
    plan = CLIQUE.plan(dict.fromkeys("abcd", 10), "((a b) (c d))")
    row = pa.table({"x": [7], "ts": pa.array([0], TS)})
    nothing = row.slice(0, 0)
    with quick_folder() as folder:
        engine = Driven(plan, folder, workers=1)
        engine.batch({0: row, 1: nothing, 2: row, 3: nothing})
        spill = dict.fromkeys(range(len(plan.rounds.spaces)), ((0, plan.groups),))
        away = WorkerOrders(defers=True, spill=spill, memory_bytes=0)
        engine.batch({0: nothing, 1: row, 2: nothing, 3: row}, worker_orders={0: away})
        assert engine.all_results().num_rows == 0, "half of it is on disk"
        engine.batch(
            {}, worker_orders={0: WorkerOrders(defers=True, clean_bytes=ALL, memory_bytes=0)}
        )
        assert engine.all_results().num_rows == 1
        engine.checkpoint.close()
