from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.model.errors import BraidError
from braid.plan.orders import parse_orders, show_orders
from braid.plan.tree import Join, Tree, all_trees, joins, leaves, parse_tree, show_tree

ALIASES = ["a", "b", "C", "my stream", "e`f"]


@given(st.integers(2, 5).flatmap(lambda n: st.sampled_from(list(all_trees(range(n))))))
def test_a_tree_survives_its_text(tree: Tree) -> None:
    aliases = ALIASES[: len(leaves(tree))]
    assert parse_tree(show_tree(tree, aliases), aliases) == tree


@pytest.mark.parametrize(("streams", "count"), [(1, 1), (2, 1), (3, 4), (4, 26), (5, 236)])
def test_there_are_as_many_trees_as_schroeder_counted(streams: int, count: int) -> None:
    trees = list(all_trees(range(streams)))
    assert len(trees) == len(set(trees)) == count
    assert all(sorted(leaves(tree)) == list(range(streams)) for tree in trees)


def test_joins_come_before_those_above_them() -> None:
    tree = Join((Join((0, 1)), Join((2, Join((3, 4))))))
    seen: list[Tree] = []
    for join in joins(tree):
        assert all(child in seen for child in join.children if isinstance(child, Join))
        seen.append(join)
    assert seen[-1] == tree


def test_names_are_found_in_any_case_and_brackets_need_no_spaces() -> None:
    assert parse_tree("((A b)c)", ["a", "b", "C"]) == Join((Join((0, 1)), 2))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("(a b)", "lacks the stream 'c'"),
        ("(a b c a)", "names the stream 'a' more than once"),
        ("(a b d)", "names 'd', which is no stream"),
        ("((a) b c)", "fewer than two inputs"),
        ("(a b c", "does not close"),
        ("a b c)", "closes a bracket"),
        ("a b c", "not one tree"),
        ("", "not one tree"),
        ("(a b `c)", "closing `"),
        ("()" * 3, "fewer than two"),
        ("(" * 5000, "does not close"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(BraidError) as caught:
        parse_tree(text, ["a", "b", "c"])
    assert told in caught.value.message
    assert caught.value.hint


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    with pytest.raises(BraidError) as caught:
        parse_tree("(orders paymets)", ["orders", "payments"])
    assert "payments" in str(caught.value.hint)


TREE = Join((Join((0, 1)), 2, 3))
NAMES = ["a", "b", "c", "d"]


def test_orders_name_streams_and_joins_as_the_plan_has_them() -> None:
    orders = parse_orders("c: d (a b); (a b): d c; a: b", TREE, NAMES)
    assert orders == {2: (3, Join((0, 1))), Join((0, 1)): (3, 2), 0: (1,)}
    assert parse_orders(show_orders(orders, NAMES), TREE, NAMES) == orders


def test_names_in_orders_may_have_the_marks_between_orders() -> None:
    names = ["a;b", "c: d", "`;`", "e"]
    orders = {2: (3, Join((0, 1))), 0: (1,), 1: (0,)}
    assert parse_orders(show_orders(orders, names), TREE, names) == orders


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("c d (a b)", "is no probe order"),
        ("c: d", "each other input"),
        ("c: d d", "each other input"),
        ("c: a b d", "each other input"),
        ("(a c): d", "no input of a join"),
        ("c: d (a b); c: (a b) d", "two probe orders"),
        ("x: a", "no stream of the query"),
        ("a c: d", "is no probe order"),
        ("a: b: c", "is no probe order"),
        ("`a: b", "closing `"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(BraidError) as caught:
        parse_orders(text, TREE, NAMES)
    assert told in caught.value.message
    assert caught.value.hint
