"""The oracles against answers worked out by hand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from braid.model.expression import GROUPED, Call, Column, Literal
from braid.model.query import (
    UNBOUNDED_US,
    WINDOW_END,
    Aggregate,
    Derived,
    Grouping,
    History,
    Key,
    Output,
    Query,
    StreamRef,
    TimeBound,
)
from tests.oracle.answers import counted, counted_rows, oracle, prepared
from tests.oracle.nested_loops import nested_loops

Row = tuple[Any, ...]
Answer = Callable[..., list[Row]]


def by_duckdb(query: Query, rows: Sequence[pa.Table], **closed: int) -> list[Row]:
    table = oracle(query, rows, "ts", **closed)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def by_loops(query: Query, rows: Sequence[pa.Table], **closed: int) -> list[Row]:
    return nested_loops(query, rows, "ts", **closed)


both = pytest.mark.parametrize("answer", [by_duckdb, by_loops])


def stream(*rows: tuple[Any, int | None, Any]) -> pa.Table:
    """Rows of k, ts in microseconds, v."""
    k, ts, v = zip(*rows, strict=True)
    kind = pa.timestamp("us", "UTC")
    return pa.table(
        {"k": pa.array(k, pa.int64()), "ts": pa.array(ts, kind), "v": pa.array(v, pa.int64())}
    )


def pair(left_us: int = UNBOUNDED_US, right_us: int = UNBOUNDED_US, **more: Any) -> Query:
    """Two streams joined on k, with both v in the output."""
    return Query(
        text="",
        streams=(StreamRef("a", "a", left_us), StreamRef("b", "b", right_us)),
        keys=(Key((Column(0, "k"), Column(1, "k"))),),
        output=(Output("x", Column(0, "v")), Output("y", Column(1, "v"))),
        **more,
    )


def with_history(query: Query, number: int, history: History) -> Query:
    streams = list(query.streams)
    streams[number] = replace(streams[number], history=history)
    return replace(query, streams=tuple(streams))


@both
def test_a_window_is_how_much_older_than_the_newest_a_row_may_be(answer: Answer) -> None:
    rows = [stream((1, 100, 1)), stream((1, 110, 2), (1, 111, 3), (1, 50, 4), (1, 49, 5))]
    assert sorted(answer(pair(10, 50), rows)) == [(1, 2), (1, 4)]


@both
def test_nulls_never_join(answer: Answer) -> None:
    rows = [stream((None, 1, 1), (1, None, 2)), stream((None, 1, 3), (1, 1, 4))]
    assert answer(pair(), rows) == []


@both
def test_a_bound_compares_two_event_times(answer: Answer) -> None:
    rows = [stream((1, 100, 1)), stream((1, 104, 2), (1, 105, 3), (1, 90, 4))]
    query = pair(bounds=(TimeBound(1, 0, 4), TimeBound(0, 1, 0)))
    assert answer(query, rows) == [(1, 2)]


@both
def test_a_condition_that_is_null_does_not_hold(answer: Answer) -> None:
    rows = [stream((1, 1, 1), (1, 1, None)), stream((1, 1, 2), (1, 1, 1))]
    query = pair(conditions=(Call("<", (Column(0, "v"), Column(1, "v"))),))
    assert answer(query, rows) == [(1, 2)]


@both
def test_a_history_holds_a_row_until_enough_are_newer(answer: Answer) -> None:
    old = stream((1, 10, 1), (1, 20, 2), (2, 15, 9), (1, 20, 3), (1, 30, 4))
    new = stream((1, 10, 0), (1, 19, 1), (1, 20, 2), (1, 30, 3))
    last = with_history(pair(), 0, History(("k",), 1))
    # Rows with equal times are not newer than one another: 2 and 3 stay together.
    assert sorted(answer(last, [old, new])) == [
        *[(1, 0), (1, 1)],
        *[(2, 0), (2, 1), (2, 2)],
        *[(3, 0), (3, 1), (3, 2)],
        *[(4, 0), (4, 1), (4, 2), (4, 3)],
    ]
    two = with_history(pair(), 0, History(("k",), 2))
    assert sorted(set(answer(two, [old, new])) - set(answer(last, [old, new]))) == [
        *[(2, 3), (3, 3)],
    ]


@both
def test_a_history_counts_no_rows_after_the_result(answer: Answer) -> None:
    old = stream((1, 10, 1), (1, 50, 2))
    query = with_history(pair(), 0, History(("k",), 1))
    assert sorted(answer(query, [old, stream((1, 49, 0))])) == [(1, 0), (2, 0)]
    assert sorted(answer(query, [old, stream((1, 50, 0))])) == [(2, 0)]


@both
def test_null_partition_values_are_a_partition_and_filtered_rows_do_not_count(
    answer: Answer,
) -> None:
    old = stream((1, 10, None), (1, 20, None), (1, 20, 5), (1, 30, 3))
    query = with_history(pair(), 0, History(("v",), 1))
    assert counted_rows(answer(query, [old, stream((1, 40, 0))])) == {
        (None, 0): 1,
        (5, 0): 1,
        (3, 0): 1,
    }
    streams = (
        replace(query.streams[0], history=History((), 1), filter="`v` IS NOT NULL"),
        query.streams[1],
    )
    few = stream((1, 10, 5), (1, 20, None))
    assert answer(replace(query, streams=streams), [few, stream((1, 40, 0))]) == [(5, 0)]


@both
def test_derived_columns_and_filters_are_sparks_sql(answer: Answer) -> None:
    ref = StreamRef(
        "a", "a", UNBOUNDED_US, derived=(Derived("third", "`v` % 3"),), filter="`v` % 3 = 0"
    )
    query = replace(
        pair(),
        streams=(ref, StreamRef("b", "b", UNBOUNDED_US)),
        output=(Output("x", Call("+", (Column(0, "third"), Column(1, "v")))),),
    )
    rows = [stream((1, 1, 3), (1, 1, 4), (1, 1, None)), stream((1, 1, 10))]
    assert answer(query, rows) == [(10,)]


def test_rows_are_prepared_as_catalyst_would() -> None:
    ref = StreamRef("a", "a", 0, derived=(Derived("odd name", "`v` + 1"),), filter="v > 1")
    table = prepared(ref, stream((1, None, 1), (None, 5, 2)))
    assert table.column_names == ["k", "ts", "v", "odd name"]
    assert table.column("odd name").to_pylist() == [3]
    assert table.schema.field("ts").type == pa.timestamp("us", "UTC")


def grouped(query: Query, slide_us: int, *aggregates: Aggregate, **more: Any) -> Query:
    outputs = [f"key {n}" for n in range(len(more.get("keys", ())))]
    outputs += [f"aggregate {n}" for n in range(len(aggregates))]
    return replace(
        query,
        grouping=Grouping(more.pop("keys", ()), aggregates, slide_us, **more),
        output=tuple(Output(n, Column(GROUPED, n)) for n in (*outputs, WINDOW_END)),
    )


def at(moment_us: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=moment_us)


COUNT = Aggregate("count", None)


@both
def test_groups_are_counted_at_every_multiple_of_the_slide(answer: Answer) -> None:
    rows = [stream((1, 10, 1)), stream((1, 14, 2), (1, 25, 3))]
    query = grouped(pair(20, 10), 10, COUNT)
    assert sorted(answer(query, rows, closed_us=50)) == [(1, at(20)), (1, at(30))]
    assert sorted(answer(query, rows, closed_us=29)) == [(1, at(20))]
    assert answer(query, rows, closed_us=19) == []


@both
def test_both_ends_of_a_window_are_inside(answer: Answer) -> None:
    rows = [stream((1, 10, 1)), stream((1, 20, 2))]
    query = grouped(pair(10, 10), 10, COUNT)
    assert answer(query, rows, closed_us=100) == [(1, at(20))]


@both
def test_windows_without_end_answer_up_to_the_last_closed_moment(answer: Answer) -> None:
    rows = [stream((1, 15, 1)), stream((1, 12, 2))]
    found = answer(grouped(pair(), 10, COUNT), rows, closed_us=45)
    assert sorted(found) == [(1, at(20)), (1, at(30)), (1, at(40))]


@both
def test_moments_before_1970_are_multiples_too(answer: Answer) -> None:
    rows = [stream((1, -15, 1)), stream((1, -12, 2))]
    found = answer(grouped(pair(5, 5), 10, COUNT), rows, closed_us=45)
    assert sorted(found) == [(1, at(-10))]


@both
def test_aggregates_pass_over_nulls_and_groups_do_not(answer: Answer) -> None:
    v = Column(0, "v")
    aggregates = [COUNT, *(Aggregate(name, v) for name in ("count", "sum", "min", "max"))]
    rows = [stream((1, 1, 5), (1, 1, None), (1, 1, 7)), stream((1, 1, None), (1, 1, 1))]
    query = grouped(pair(), 10, *aggregates, keys=(Column(1, "v"),))
    assert counted_rows(answer(query, rows, closed_us=10)) == {
        (None, 3, 2, 12, 5, 7, at(10)): 1,
        (1, 3, 2, 12, 5, 7, at(10)): 1,
    }
    empty = grouped(pair(), 10, *aggregates)
    rows = [stream((1, 1, None)), stream((1, 1, 1))]
    assert answer(empty, rows, closed_us=10) == [(1, 0, None, None, None, at(10))]


@both
def test_having_chooses_among_groups(answer: Answer) -> None:
    more = Call(">", (Column(GROUPED, "aggregate 0"), Literal(1)))
    rows = [stream((1, 1, 1), (1, 1, 2), (2, 1, 3)), stream((1, 1, 1), (2, 1, 1))]
    query = grouped(pair(), 10, COUNT, keys=(Column(0, "k"),), having=more)
    assert answer(query, rows, closed_us=10) == [(1, 2, at(10))]


@both
def test_nothing_in_common_is_nothing_at_any_moment(answer: Answer) -> None:
    rows = [stream((1, 1, 1)), stream((2, 1, 1))]
    assert answer(grouped(pair(), 10, COUNT), rows, closed_us=100) == []


@both
def test_the_end_of_a_window_has_the_type_of_event_times(answer: Answer) -> None:
    rows = [stream((1, 1, 1)), stream((1, 1, 1))]
    naive = [t.set_column(1, "ts", t.column("ts").cast(pa.timestamp("us"))) for t in rows]
    found = answer(grouped(pair(), 10, COUNT), naive, closed_us=10)
    assert found == [(1, at(10).replace(tzinfo=None))]


def test_a_grouped_query_needs_to_know_what_has_closed() -> None:
    with pytest.raises(ValueError, match="only up to some moment"):
        oracle(grouped(pair(), 10, COUNT), [stream((1, 1, 1))] * 2, "ts")


def test_counting_forgives_the_order_of_sums_but_not_the_sign_of_a_zero_handed_through() -> (
    None
):
    query = replace(pair(), output=(Output("x", Column(0, "v")),))
    negative, positive = pa.table({"x": [-0.0]}), pa.table({"x": [0.0]})
    assert counted(negative) == counted(positive)
    assert counted(negative, query) != counted(positive, query)
    assert counted(pa.table({"x": [0.1 + 0.2]})) == counted(pa.table({"x": [0.3]}))
    assert counted(pa.table({"x": [float("nan")]})) == counted(pa.table({"x": [float("nan")]}))
    assert counted(pa.table({"x": [1, 1]})) != counted(pa.table({"x": [1]}))
