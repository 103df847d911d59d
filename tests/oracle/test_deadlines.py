"""Joined rows live until their deadline: states hold little more, and lack nothing."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations, pairwise, product
from operator import lt
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.experiment.zhu_optimizers import SETS
from braid.optimize import cost_of
from braid.plan.join_plan import JoinPlan
from braid.plan.tree import all_trees
from braid.record.closing import earliest_pending_us
from braid.record.worker_orders import WorkerOrders
from braid.state import ladder as rules
from braid.state.horizon import NO_HORIZON
from braid.state.runs import deadlines_of
from braid.state.upkeep import open_ladder
from tests.driven import Driven
from tests.oracle.queries import cases
from tests.oracle.steady import CLIQUE, TS, Steady
from tests.oracle.test_overflow import results, with_workers
from tests.oracle.test_plans_agree_with_duckdb import CAMPAIGN, SLOW, planned
from tests.unit.state.making import EPOCH, STREAM, equal_join, quick_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.plan.rounds import State
    from braid.record.commit import Commit
    from braid.state.horizon import Horizon

WINDOW_S, S = 10, 1_000_000
AB_BC = {"a": ["x"], "b": ["x", "y"], "c": ["y"]}
JOINED = "a.x = b.x AND b.y = c.y"


@contextmanager
def as_before(batches: float) -> Iterator[None]:
    """For so many batches, joined rows are purged by the time of their youngest member alone.

    That is what versions did that knew no deadlines of runs.
    """
    horizon, evaluate, done = JoinPlan.horizon, Driven.batch, 0

    def by_time(plan: JoinPlan, state: State, low_us: int | None) -> Horizon:
        found = horizon(plan, state, low_us)
        return replace(found, low_us=None) if done < batches else found

    def counted(engine: Driven, *args: object, **options: object) -> pa.Table:
        nonlocal done
        found = evaluate(engine, *args, **options)
        done += 1
        if done <= batches:
            engine.commit = without_deadlines(engine.commit)
            engine.checkpoint.write(engine.commit)
        return found

    with patch.object(JoinPlan, "horizon", by_time), patch.object(Driven, "batch", counted):
        yield


def without_deadlines(commit: Commit) -> Commit:
    """A record as a version wrote it that knew none."""
    ladders = tuple(
        tuple(tuple(replace(run, until_us=()) for run in ladder) for ladder in of_worker)
        for of_worker in commit.ladders
    )
    generations = tuple(
        tuple(
            replace(each, runs={s: replace(run, until_us=()) for s, run in each.runs.items()})
            for each in own
        )
        for own in commit.generations
    )
    return replace(commit, ladders=ladders, generations=generations)


def rows_of_joined_state(tree: str) -> float:
    """How many rows the state of the joined streams holds once windows are full, on average."""
    plan = CLIQUE.plan(dict.fromkeys(CLIQUE.keys, WINDOW_S), tree)
    (joined,) = (n for n, s in enumerate(plan.rounds.states) if s.relation.is_joined)
    held = []
    with quick_folder() as folder:
        for second, engine in enumerate(CLIQUE.run(plan, folder, 4 * WINDOW_S)):
            if second >= 2 * WINDOW_S:
                held.append(sum(run.rows for run in engine.commit.runs_of(joined)))
    return sum(held) / len(held)


@pytest.mark.parametrize(("tree", "most"), [("((a b) c d)", 0.7), ("((a b c) d)", 0.5)])
def test_a_joined_state_holds_little_more_than_can_still_join(tree: str, most: float) -> None:
    now = rows_of_joined_state(tree)
    with as_before(float("inf")):
        before = rows_of_joined_state(tree)
    assert now <= most * before, now / before


@pytest.mark.parametrize(
    ("number", "tree", "ratio"),
    [
        (1, "((a b) c)", 2.67),
        (2, "((a b) c)", 2.33),
        (3, "((a b) (c d))", 8.5),
        (4, "((a b) (c d))", 18.5),
    ],
)
def test_states_of_plans_compare_as_the_dissertations_model_says(
    number: int, tree: str, ratio: float
) -> None:
    """The mjoin and the other plans of each set of Table 8.1.

    Of four streams, b and c meet in few rows: no plan keeps these, and they make most results.
    """
    graph = SETS[number]
    names = graph.streams
    if len(names) == 4:
        rare = {("b", "c"): graph.selectivity["b", "c"] / 1000}
        graph = replace(graph, selectivity={**graph.selectivity, **rare})
    mjoin = f"({' '.join(names)})"
    model = cost_of(graph, tree).memory / cost_of(graph, mjoin).memory
    assert model == pytest.approx(ratio, abs=0.01)
    window_s = int(max(graph.windows.values()))
    pairs = [(*pair, key) for pair, key in zip(pairwise(names), "xyz", strict=False)]
    streams = Steady(
        {name: [key for *pair, key in pairs if name in pair] for name in names},
        {key: round(1 / graph.selectivity_of(one, other)) for one, other, key in pairs},
        {name: int(rate) for name, rate in graph.rates.items()},
        " AND ".join(f"{one}.{key} = {other}.{key}" for one, other, key in pairs),
    )
    held = []
    for each in (mjoin, tree):
        plan, rows = streams.plan(dict.fromkeys(names, window_s), each), []
        with quick_folder() as folder:
            for engine in streams.run(plan, folder, 2 * window_s + 8):
                ladders = (ladder for own in engine.commit.ladders for ladder in own)
                rows.append(sum(run.rows for ladder in ladders for run in ladder))
        held.append(sum(rows[-10:]))
    assert held[1] / held[0] == pytest.approx(model, rel=0.25)


@settings(SLOW, max_examples=40 * CAMPAIGN)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_no_row_is_left_past_its_deadline_and_no_result_is_lost(
    data: st.DataObject, seed: int
) -> None:
    case = data.draw(cases(styles=["plain", "grouped"], streams=[3, 4], most_batches=8))
    tree = Random(seed).choice(list(all_trees(range(len(case.query.streams)))))
    with quick_folder() as folder, patch.object(rules, "DEAD_SHARE", 10**9):
        engine = Driven(planned(case, tree), folder, case.workers, case.hash_bits)
        for rows, workers in zip(case.prepared_batches, case.restarts, strict=True):
            if workers:
                engine = engine.restart(workers)
            before = engine.commit
            engine.batch(rows)
            rounds = engine.plan.rounds
            for number, state in enumerate(rounds.states):
                low_us = earliest_pending_us(engine.plan, before, rounds.round_of_state(number))
                if state.relation.is_joined and low_us is not None:
                    assert all(until >= low_us for until in deadlines(engine, number))
        engine.batch({}, at_end=True)
        engine.checkpoint.close()
        assert case.counted(engine.all_results()) == case.expected()


def deadlines(engine: Driven, state: int) -> Iterator[int]:
    """The deadlines of all rows that a joined state has on any worker."""
    space = engine.plan.rounds.states[state].space
    for worker, ladders in enumerate(engine.commit.ladders):
        store = engine.stores(worker)[space]
        for pair in open_ladder(store, ladders[state], NO_HORIZON):
            found = deadlines_of(pair.rows)
            assert found is not None
            yield from found.tolist()


@pytest.mark.parametrize("defers", [True, False], ids=["defer", "probe"])
@settings(SLOW, max_examples=25 * CAMPAIGN)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_record_of_a_version_without_deadlines_goes_on_exactly(
    defers: bool, data: st.DataObject, seed: int
) -> None:
    chance = Random(seed)
    shapes = ["chain", "star", "cycle", "mixed", "one"]
    case = data.draw(cases(styles=["plain"], shapes=shapes, streams=[3, 4], most_batches=8))
    case = with_workers(case, chance)
    tree = chance.choice(list(all_trees(range(len(case.query.streams)))))
    with as_before(chance.randrange(1, 8)):
        found, *_ = results(case, planned(case, tree), chance, defers)
    assert found == case.expected()


def test_a_joined_row_of_an_older_record_pays_what_it_owes_past_its_deadline() -> None:
    streams = Steady(AB_BC, {}, {}, JOINED)
    plan = streams.plan(dict.fromkeys("abc", WINDOW_S), "((a b) c)")

    def row(second: int, **keys: int) -> pa.Table:
        return pa.table({**{k: [v] for k, v in keys.items()}, "ts": pa.array([second * S], TS)})

    away = dict.fromkeys(range(len(plan.rounds.spaces)), ((0, plan.groups),))
    with quick_folder() as folder, as_before(4):
        engine = Driven(plan, folder, workers=1)
        engine.worker_orders = WorkerOrders(defers=True, memory_bytes=1 << 20)
        engine.batch({2: row(8, y=1)})
        pushed = replace(engine.worker_orders, spill=away)
        engine.batch({0: row(1, x=1), 1: row(9, x=1, y=1)}, worker_orders={0: pushed})
        engine.batch({0: row(15, x=2), 1: row(15, x=3, y=3), 2: row(15, y=4)})
        engine.batch({})
        assert engine.commit.purged_us[1] == engine.commit.watermark_us == 15 * S
        assert engine.all_results().num_rows == 0, "a part of it is on disk"
        engine.batch({})
        assert engine.all_results().num_rows == 1
        engine.checkpoint.close()


@pytest.mark.parametrize("tree", ["(s0 s1 s2)", "((s0 s1) s2)", "(s0 (s1 s2))"])
@settings(SLOW, max_examples=10 * CAMPAIGN)
@given(seed=st.integers(0, 2**32))
def test_of_ordered_rows_a_later_result_has_a_later_member(tree: str, seed: int) -> None:
    """Lemma 15.1 of Zhu's dissertation; each batch has one row, later than all before."""
    chance = Random(seed)
    plan = equal_join(3, window_us=6_000_000).replanned([tree])
    shown: list[list[tuple[int, ...]]] = []
    with quick_folder() as folder:
        engine = Driven(plan, folder, workers=2)
        for second in range(25):
            at = EPOCH + dt.timedelta(seconds=second)
            row = pa.table({"k": [7], "ts": [at], "v": [second]}, schema=STREAM)
            found = engine.batch({chance.randrange(3): row})
            shown.append([(r["t0"], r["t1"], r["t2"]) for r in found.to_pylist()])
        engine.checkpoint.close()
    for now, later in combinations(shown, 2):
        assert all(any(map(lt, t, u)) for t, u in product(now, later))
    assert sum(map(bool, shown)) > 1
