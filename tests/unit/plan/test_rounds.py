from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from braid import cql
from braid.model.errors import BraidError
from braid.model.query import UNBOUNDED_US, Query
from braid.plan.explain import explain, tree_levels
from braid.plan.lay_rounds import lay_rounds
from braid.plan.names import state_names
from braid.plan.orders import parse_orders
from braid.plan.rounds import Shape
from braid.plan.tree import all_trees, check_tree, default_tree, parse_tree, show_tree
from braid.plan.windows import kept_us
from tests.oracle.steady import CHAIN as STEADY

if TYPE_CHECKING:
    from braid.plan.rounds import Rounds

COLUMNS = pa.schema(
    {
        "k": pa.int64(),
        "x": pa.int64(),
        "y": pa.string(),
        "v": pa.int64(),
        "ts": pa.timestamp("us", "UTC"),
    }
)


def bound(text: str) -> Query:
    return cql.bind(text, dict.fromkeys("abcd", COLUMNS), event_time="ts")


def planned(query: Query, plan: str | None = None, order: str = "") -> Rounds:
    aliases = [stream.alias for stream in query.streams]
    tree = default_tree(query) if plan is None else parse_tree(plan, aliases)
    return lay_rounds(query, [Shape(tree, parse_orders(order, tree, aliases))], "ts")


def windows(streams: str) -> str:
    return ", ".join(f"{s} [RANGE 10 SECONDS]" for s in streams)


ONE_KEY = f"SELECT a.v FROM {windows('abc')} WHERE a.k = b.k AND b.k = c.k"
CHAIN = f"SELECT a.v FROM {windows('abc')} WHERE a.x = b.x AND b.y = c.y"
CYCLE = f"SELECT a.v FROM {windows('abc')} WHERE a.x = b.x AND b.y = c.y AND c.k = a.k"
MIXED = f"SELECT d.v FROM {windows('abcd')} WHERE a.k = b.k AND b.k = d.k AND b.x = c.x"
STAR = f"SELECT a.v FROM {windows('abcd')} WHERE a.x = b.x AND a.y = c.y AND a.k = d.k"


def test_a_join_on_one_key_is_one_round_with_a_state_per_stream() -> None:
    query = bound(ONE_KEY)
    rounds = planned(query)
    assert len(rounds.rounds) == len(rounds.spaces) == 1
    assert state_names(query, rounds) == ("a by k", "b by k", "c by k")
    assert all(len(segment.steps) == 2 for segment in rounds.rounds[0].segments)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (ONE_KEY, "(a b c)"),
        (CHAIN, "((a b) c)"),
        (CYCLE, "((a b) c)"),
        (STAR, "(((a b) c) d)"),
        (
            f"SELECT a.v FROM {windows('abcd')} WHERE a.x = b.x AND b.x = c.x AND c.y = d.y",
            "((a b c) d)",
        ),
    ],
)
def test_by_default_there_is_one_join_per_key(text: str, tree: str) -> None:
    query = bound(text)
    assert show_tree(default_tree(query), [s.alias for s in query.streams]) == tree


def test_a_change_of_key_is_a_shuffle_and_intermediate_results_are_kept() -> None:
    query = bound(CHAIN)
    rounds = planned(query)
    assert len(rounds.rounds) == 2
    assert set(state_names(query, rounds)) == {"a by x", "b by x", "(a b) by y", "c by y"}


def test_a_join_without_a_common_key_arranges_a_stream_by_each_key_that_is_probed() -> None:
    query = bound(CHAIN)
    rounds = planned(query, "(a b c)")
    assert set(state_names(query, rounds)) == {"a by x", "b by x", "b by y", "c by y"}
    assert len(rounds.rounds) == 2


def test_keys_that_meet_in_one_join_arrange_its_states_together() -> None:
    query = bound(CYCLE)
    assert "(a b) by y, k" in state_names(query, planned(query))


def test_streams_that_share_no_key_are_joined_all_with_all() -> None:
    query = bound(CHAIN)
    assert "a by nothing" in state_names(query, planned(query, "((a c) b)"))


def test_rows_probe_in_the_order_that_is_asked_for() -> None:
    query = bound(ONE_KEY)
    rounds = planned(query, order="a: c b")
    names = state_names(query, rounds)
    first = next(s for s in rounds.rounds[0].segments if s.origin == 0)
    assert [names[step.state] for step in first.steps] == ["c by k", "b by k"]


def test_a_result_is_made_by_its_latest_arrival_alone() -> None:
    for plan in (None, "(a b c)", "(a (b c))", "((a c) b)"):
        rounds = planned(bound(CHAIN), plan)
        meetings = {
            (segment.join, segment.origin, rounds.states[step.state].relation.streams): step
            for a_round in rounds.rounds
            for segment in a_round.segments
            for step in segment.steps
        }
        assert meetings
        for step in meetings.values():
            assert step.news is not None or not step.sees_new_rows


@pytest.mark.parametrize("text", [CHAIN, CYCLE, STAR, ONE_KEY, MIXED])
def test_every_column_that_a_step_needs_is_there_under_every_tree(text: str) -> None:
    query = bound(text)
    for tree in all_trees(range(len(query.streams))):
        rounds = lay_rounds(query, [Shape(tree, {})], "ts")
        for number, a_round in enumerate(rounds.rounds):
            for segment in a_round.segments:
                there = set(a_round.ports[segment.port].relation.columns)
                for step in segment.steps:
                    there |= set(rounds.states[step.state].relation.columns)
                    assert {c for pair in step.key + step.equal for c in pair} <= there
                for port in segment.to:
                    assert set(rounds.rounds[number + 1].ports[port].relation.columns) <= there


def test_groups_stay_where_they_are_joined_if_they_decide_the_key() -> None:
    at_home = planned(bound(ONE_KEY.replace("a.v", "b.k, count(*)") + " GROUP BY b.k"))
    assert at_home.grouped_port is None
    assert len(at_home.rounds) == 1
    away = planned(bound(ONE_KEY.replace("a.v", "a.v, count(*)") + " GROUP BY a.v"))
    assert away.grouped_port is not None
    assert len(away.rounds) == 2


def test_conditions_are_checked_at_the_first_probe_that_has_their_columns() -> None:
    query = bound(CHAIN + " AND a.v < b.v AND a.v < c.v")
    rounds = planned(query)
    checked = [
        (number, len(step.conditions))
        for number, a_round in enumerate(rounds.rounds)
        for segment in a_round.segments
        for step in segment.steps
    ]
    assert checked == [(0, 1), (0, 1), (1, 1), (1, 1)]


def test_columns_travel_only_as_far_as_they_are_needed() -> None:
    query = bound(CHAIN + " AND a.k < b.k")
    rounds = planned(query)
    names = state_names(query, rounds)
    kept = rounds.states[names.index("(a b) by y")].relation.columns
    assert {(c.stream, c.column) for c in kept} == {(1, "y"), (0, "v")}


def test_a_history_must_be_an_input_of_the_outermost_join() -> None:
    query = bound(
        "SELECT a.v FROM a [PARTITION BY k ROWS 2], b [RANGE 1 SECOND], c [RANGE 1 SECOND] "
        "WHERE a.k = b.k AND b.k = c.k"
    )
    check_tree(query, default_tree(query))
    with pytest.raises(BraidError, match="whose rows leave its history"):
        check_tree(query, parse_tree("((a b) c)", ["a", "b", "c"]))


def test_bounds_between_event_times_shorten_what_is_kept() -> None:
    text = "SELECT a.v FROM a [RANGE 1 HOUR], b [UNBOUNDED] WHERE a.k = b.k"
    assert kept_us(bound(text)) == (3_600_000_000, UNBOUNDED_US)
    bounded = text + " AND a.ts BETWEEN b.ts AND b.ts + INTERVAL 5 SECONDS"
    assert kept_us(bound(bounded)) == (0, 5_000_000)


def test_an_explanation_names_states_probes_shuffles_and_what_is_pushed_down() -> None:
    query = bound(CHAIN + " AND a.v % 2 = 0 AND a.v < c.v")
    told = explain(query, planned(query))
    for part in (
        query.text,
        "plan ((a b) c)",
        "only where",
        "(a b) by y",
        "a → b by x",
        "round 2: (a b) and c by y",
        "a.v < c.v",
    ):
        assert part in told


def test_what_a_group_by_keeps_is_told_in_the_querys_own_words() -> None:
    query = bound(ONE_KEY.replace("a.v", "a.v, count(*), sum(b.v)") + " GROUP BY a.v")
    told = explain(query, planned(query))
    assert "  aggregates  holds by group: a.v, count(*), sum(b.v)\n" in told
    assert "key 0" not in told


def test_a_picture_has_streams_side_by_side_and_joins_above_their_inputs() -> None:
    tree = parse_tree("((a b) (c d))", list("abcd"))
    places = tree_levels(tree)
    assert [places[stream] for stream in range(4)] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert places[tree] == (1.5, 2)


@pytest.mark.parametrize("old", ["(((a b) c) d)", "((a b) (c d))", "(a b c d)"])
def test_something_comes_to_every_round_of_a_tree_that_is_fed(old: str) -> None:
    plan = STEADY.plan(dict.fromkeys(STEADY.keys, 3), old)
    for tree in all_trees(range(4)):
        new = show_tree(tree, list(STEADY.keys))
        rounds = plan.replanned([old, new], feeds=True).rounds.rounds
        assert all(any(not port.made for port in each.ports) for each in rounds), new
