from __future__ import annotations

import numpy as np
import pytest

from braid.control.choose import ORDERS, Chooser, on_disk
from braid.control.statistics import GroupTable
from braid.model.errors import BraidError

TABLES = {
    0: GroupTable.of(
        [1, 2, 3],
        memory_bytes=[10, 20, 30],
        disk_bytes=[0, 0, 5],
        results=[10, 100, 0],
        recent_results=[50, 0, 1],
        last_insert=[50, 40, 50],
    ),
    2: GroupTable.of([1, 9], memory_bytes=[40, 0], results=[40, 0], last_insert=[49, 1]),
}


@pytest.mark.parametrize(
    ("order", "chosen"),
    [
        ("least-productive", {0: (3, 1)}),
        ("most-productive", {0: (2, 1), 2: (1,)}),
        ("largest", {2: (1,)}),
        ("inactive", {0: (2, 3)}),
    ],
)
def test_each_order_has_its_own_first_groups(order: str, chosen: dict[int, tuple[int]]) -> None:
    groups, amount = Chooser(order, theta_t=5).choose(TABLES, 40, 50)
    assert groups == chosen
    assert amount >= 40


def test_productivity_may_be_the_recent_one() -> None:
    groups, _ = Chooser(recent=True).choose(TABLES, 50, 50)
    assert groups == {0: (2,), 2: (1,)}


def test_random_is_the_same_for_a_batch_and_worker_and_differs_between_them() -> None:
    tables = {0: GroupTable.of(range(50), memory_bytes=1)}
    chooser = Chooser("random")
    first = chooser.choose(tables, 10, 1, worker=1)
    assert first == chooser.choose(tables, 10, 1, worker=1)
    others = [(2, 1, 0), (1, 2, 0), (1, 1, 7)]
    for batch, worker, seed in others:
        other = Chooser("random", seed=seed).choose(tables, 10, batch, worker=worker)
        assert other != first


def test_all_is_chosen_if_there_is_not_enough_but_never_what_is_not_in_memory() -> None:
    groups, amount = Chooser().choose(TABLES, 1e9, 50)
    assert {space: set(ids) for space, ids in groups.items()} == {0: {1, 2, 3}, 2: {1}}
    assert amount == 100


def test_excluded_groups_are_left_alone() -> None:
    groups, amount = Chooser().choose(TABLES, 1e9, 50, excluded=on_disk(TABLES))
    assert 3 not in groups[0]
    assert amount == 70


@pytest.mark.parametrize("amount", [0, -5, float("nan")])
def test_no_amount_needs_no_group(amount: float) -> None:
    assert Chooser().choose(TABLES, amount, 50) == ({}, 0)
    assert Chooser().choose_within(TABLES, amount, 50) == ({}, 0)


def test_within_an_amount_what_does_not_fit_is_passed_over() -> None:
    groups, amount = Chooser("largest").choose_within(TABLES, 35, 50)
    assert (groups, amount) == ({0: (3,)}, 30)
    groups, amount = Chooser("largest").choose_within(TABLES, 55, 50)
    assert (groups, amount) == ({0: (1,), 2: (1,)}, 50)


def test_a_worker_without_groups_has_nothing_to_choose() -> None:
    for order in ORDERS:
        assert Chooser(order).choose({}, 10, 0) == ({}, 0)
        assert Chooser(order).choose({0: GroupTable.of([])}, np.inf, 0) == ({}, 0)


def test_an_unknown_order_is_named_with_the_nearest() -> None:
    with pytest.raises(BraidError, match="unknown order of groups 'bigest'") as caught:
        Chooser("bigest")
    assert "largest" in str(caught.value.hint)
