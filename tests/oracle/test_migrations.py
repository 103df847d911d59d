"""Plans that change while they run leave the results as they are, whichever way they change."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from braid.plan.tree import all_trees, show_tree
from braid.record.plan_change import Way
from braid.state.groups import group_of, ranges_of
from braid.state.runs import hashes_of
from tests.driven import Driven
from tests.oracle.queries import cases
from tests.oracle.steady import CHAIN, CLIQUE, Steady
from tests.oracle.test_overflow import random_moves
from tests.oracle.test_plans_agree_with_duckdb import CAMPAIGN, SLOW, planned
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.plan.tree import Tree
    from tests.oracle.queries import Case


ONE_KEY, SEVERAL_KEYS = ("one", "composite"), ("chain", "star", "cycle", "mixed")
STYLES = ("plain", "grouped")


@pytest.mark.parametrize("shapes", [ONE_KEY, SEVERAL_KEYS], ids=["one key", "several keys"])
@settings(SLOW, max_examples=20 * CAMPAIGN)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_any_changes_of_plan_leave_every_result_in_its_batch(
    shapes: tuple[str, ...], data: st.DataObject, seed: int
) -> None:
    case = data.draw(cases(shapes=shapes, styles=STYLES, streams=[3, 4, 5]))
    chance = Random(seed)
    trees = list(all_trees(range(len(case.query.streams))))
    tree = chance.choice(trees)

    def change(engine: Driven) -> None:
        engine.filled_at_once = chance.choice([1, 3, case.groups])
        if engine.commit.change is None and chance.random() < 0.5:
            engine.change(named(case, chance.choice(trees)), chance.choice(list(Way)))
        elif engine.commit.change is not None and chance.random() < 0.15:
            engine.give_up_change()

    changed = by_batch(case, tree, change)
    assert sum(changed, Counter()) == case.expected()
    # So a change holds no result back, and batches keep the order of results as they would.
    # Nor does it hold back what closes moments, which is the watermark of the rows.
    assert changed == by_batch(case, tree)


@settings(SLOW, max_examples=20 * CAMPAIGN)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_results_are_exact_though_workers_have_plans_of_their_own_and_groups_move(
    data: st.DataObject, seed: int
) -> None:
    shapes = data.draw(st.sampled_from([ONE_KEY, SEVERAL_KEYS]))
    case = data.draw(cases(shapes=shapes, styles=STYLES, streams=[3, 4, 5]))
    chance = Random(seed)
    trees = list(all_trees(range(len(case.query.streams))))
    assume(case.workers > 1 and all(workers != 1 for workers in case.restarts))

    def change(engine: Driven) -> None:
        engine.filled_at_once = chance.choice([3, case.groups])
        for move in engine.commit.moves:
            engine.arrive(move, with_files=chance.random() < 0.7)
        if engine.commit.change is not None or engine.commit.owes:
            return
        if chance.random() < 0.3:
            random_moves(chance, engine)
        else:
            count = chance.randrange(engine.workers) if shapes is ONE_KEY else 0
            some = chance.sample(range(engine.workers), count)
            way = chance.choice([Way.MOVING_STATE, *Way]) if not some else Way.MOVING_STATE
            engine.change(named(case, chance.choice(trees)), way, some)

    changed = by_batch(case, chance.choice(trees), change)
    assert sum(changed, Counter()) == case.expected()


def by_batch(
    case: Case, tree: Tree, change: Callable[[Driven], None] = lambda _: None
) -> list[Counter[tuple[Any, ...]]]:
    """The results of each batch; the plan may `change` before it."""
    with quick_folder() as folder:
        engine = Driven(planned(case, tree), folder, case.workers, case.hash_bits)
        for rows, workers in zip(case.prepared_batches, case.restarts, strict=True):
            if workers:
                engine = engine.restart(workers)
            change(engine)
            engine.batch(rows)
        while engine.commit.moves or any(engine.commit.waiting):
            for move in engine.commit.moves:
                engine.arrive(move, with_files=True)
            engine.batch({})
        engine.batch({}, at_end=True)
        engine.checkpoint.close()
        return [case.counted(results) for results in engine.results]


def named(case: Case, tree: Tree) -> str:
    return show_tree(tree, [ref.alias for ref in case.query.streams])


def test_a_batch_fills_the_groups_whose_turn_it_is_and_shows_results_too() -> None:
    plan = CLIQUE.plan(dict.fromkeys(CLIQUE.keys, 3), "((a b) (c d))")
    begins, progress = 5, []
    with quick_folder() as folder:
        for second, engine in enumerate(CLIQUE.run(plan, folder, begins + plan.groups + 3)):
            if second == begins:
                engine.filled_at_once = 1
                assert engine.change("(((a b) c) d)", Way.MOVING_STATE)
            elif (change := engine.commit.change) is not None:
                (abc,) = change.fresh
                progress.append((change.filled, groups_in(engine, abc)))
        shown = [results.num_rows for results in engine.results]
        assert engine.plan.texts == ("(((a b) c) d)",)
    turns = range(1, plan.groups + 1)
    assert progress == [(filled, set(range(filled))) for filled in turns]
    assert min(shown[begins:]) > 0


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("place", range(3))
def test_a_worker_without_groups_in_one_space_keeps_those_of_others(
    place: int, way: Way
) -> None:
    windows = dict.fromkeys(CHAIN.keys, 3)
    plan = CHAIN.plan(windows, "(((a b) c) d)")
    shown: list[list[int]] = []
    for changes in (False, True):
        with quick_folder() as folder:
            for second, engine in enumerate(CHAIN.run(plan, folder, 12, workers=2)):
                for move in engine.commit.moves:
                    engine.arrive(move, with_files=True)
                if second == 3:
                    space = plan.rounds.join_spaces[place]
                    marks = np.array(engine.commit.assignments[space]) == 1
                    engine.move(space, ranges_of(marks), 1, 0)
                if changes and second == 6:
                    assert engine.change("((a b) (c d))", way)
            shown.append([results.num_rows for results in engine.results])
    assert shown[0] == shown[1]
    assert min(shown[0][1:]) > 0


@pytest.mark.parametrize("filled_at_once", [1, 4])
def test_a_fed_plan_keeps_what_it_makes_for_its_last_join(filled_at_once: int) -> None:
    """That join has nothing to do as yet; a and d meet under its key, and b and c do not."""
    streams = Steady(
        keys={"a": ["x"], "b": ["x", "y"], "c": ["y"], "d": ["x"]},
        values={"x": 40, "y": 30},
        rates=dict.fromkeys("abcd", 20),
        where="a.x = b.x AND b.x = d.x AND b.y = c.y",
    )
    plan = streams.plan(dict.fromkeys("abcd", 5), "(((a b) c) d)")
    shown: list[list[int]] = []
    for changes in (False, True):
        with quick_folder() as folder:
            for second, engine in enumerate(streams.run(plan, folder, 12, workers=2)):
                engine.filled_at_once = filled_at_once
                if changes and second == 4:
                    assert engine.change("((a d) (b c))", Way.MOVING_STATE)
                    assert engine.plan.rounds.fed
            assert len(engine.plan.texts) == 1, "the change is over"
            shown.append([results.num_rows for results in engine.results])
    assert shown[0] == shown[1]


def groups_in(engine: Driven, state: int) -> set[int]:
    """The groups that have rows in a state of the only worker."""
    store = engine.stores(0)[engine.plan.rounds.states[state].space]
    found = [store.find(run) for run in engine.commit.runs_of(state)]
    assert all(found), "what a record names is there"
    hashes = [hashes_of(each.rows) for each in found if each is not None]
    return set(group_of(np.concatenate(hashes), engine.plan.groups).tolist())
