import datetime as dt
from typing import Any

import pytest

from braid.cql.fluent import Draft, stream
from braid.model.errors import QueryError
from braid.model.query import Query
from tests.unit.cql.pointing import SCHEMAS, bound, grouping_of

A = stream("a", range="1 day")
AB = A.join("b", range="1 day", on="a.k = b.k")


def query(draft: Draft) -> Query:
    return draft.bind(SCHEMAS, event_time="ts")


def test_a_draft_is_the_query_that_its_text_says() -> None:
    draft = (
        stream("a", range="10 seconds")
        .join("b", range="10 seconds", on="a.k = b.k")
        .where("a.v > b.v")
        .group_by("a.k")
        .having("count(*) > 3")
        .select("a.k", "count(*) AS n")
    )
    assert query(draft) == bound(
        "SELECT a.k, count(*) AS n FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] "
        "WHERE a.k = b.k AND a.v > b.v GROUP BY a.k HAVING count(*) > 3"
    )
    assert draft.text.splitlines() == [
        "SELECT a.k, count(*) AS n",
        "FROM a [RANGE 10 seconds]",
        "JOIN b [RANGE 10 seconds] ON a.k = b.k",
        "WHERE a.v > b.v",
        "GROUP BY a.k",
        "HAVING count(*) > 3",
    ]


def test_clauses_come_in_any_order_and_grow() -> None:
    one = AB.where("a.v > 1", "b.v > 1 OR b.v < 0").select("a.k").select("b.v")
    other = A.select("a.k", "b.v").where("a.v > 1").join("b", range="1 day", on="a.k = b.k")
    assert query(one) == query(other.where("b.v > 1 OR b.v < 0"))


def test_a_draft_never_changes() -> None:
    AB.where("a.v > 1").select("a.k")
    assert AB.columns == AB.conditions == ()


@pytest.mark.parametrize(
    ("window", "text"),
    [
        ({"range": "1 day"}, "[RANGE 1 DAY]"),
        ({"range": dt.timedelta(days=1)}, "[RANGE 1 DAY]"),
        ({"range": dt.timedelta(microseconds=1500)}, "[RANGE 1.5 MILLISECONDS]"),
        ({"unbounded": True}, "[UNBOUNDED]"),
        ({"rows": 3, "partition_by": "k"}, "[PARTITION BY k ROWS 3]"),
        ({"rows": 3, "partition_by": ["k", "limit"]}, "[PARTITION BY k, `limit` ROWS 3]"),
    ],
)
def test_windows_are_given_by_keyword(window: dict[str, Any], text: str) -> None:
    draft = A.join("b", on="a.k = b.k", **window).select("a.k")
    assert query(draft) == bound(f"SELECT a.k FROM a [RANGE 1 DAY], b {text} WHERE a.k = b.k")


def test_a_slide_goes_with_a_range_or_with_none() -> None:
    for draft in (
        stream("a", range="1 day", slide="1 hour"),
        stream("a", unbounded=True, slide="1 hour"),
    ):
        whole = draft.join("b", range="1 day", using="k").select("count(*)")
        assert grouping_of(whole.text).slide_us == 3_600_000_000


def test_a_stream_joins_with_itself_under_aliases() -> None:
    draft = stream("a", range="1 day", alias="x y").join("a", range="1 day", alias="order")
    draft = draft.where("`x y`.k = `order`.k").select("`x y`.k")
    assert [each.alias for each in query(draft).streams] == ["x y", "order"]


def test_using_takes_one_column_or_several() -> None:
    one = A.join("b", range="1 day", using=["k", "j"]).select("a.v")
    assert len(query(one).keys) == 2


def test_without_select_all_columns_come() -> None:
    names = [out.name for out in query(AB).output]
    assert names[:2] == ["a_k", "a_j"]
    assert len(names) == len(set(names)) == 16


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        (A.join("b", on="a.k = b.k").select("a.k"), "stream 'b' has no window"),
        (A.join("b", range="1 month", on="a.k = b.k").select("a.k"), "unknown unit 'month'"),
        (A.join("b", rows=3, on="a.k = b.k").select("a.k"), "ROWS needs PARTITION BY"),
        (
            A.join("b", range="1 day", rows=3, on="a.k = b.k").select("a.k"),
            "an end before this",
        ),
        (AB.select("a.kk"), "unknown column 'kk' of stream 'a'"),
        (AB.select("a.k").where("a.v > now()"), "the function now is out of scope"),
    ],
)
def test_errors_are_those_of_the_text(draft: Draft, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        query(draft)
    assert message in caught.value.message
    assert caught.value.text == draft.text


@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ("a.v > 1) OR (b.v > 1", "nothing opens this ')'"),
        ("a.v > (1", "nothing closes this '('"),
        ("a.v > 1; SELECT 2", "a part of a query has no ';'"),
        ("a.name = 'x", "nothing ends the quotation"),
        ("  -- nothing", "there is nothing here"),
    ],
)
def test_a_fragment_is_whole_in_itself(fragment: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        AB.where(fragment)
    assert message in caught.value.message


def test_a_comment_after_a_fragment_hides_nothing() -> None:
    draft = AB.where("a.v > 1 -- at least", "b.v > /* or so */ 1 ").select("a.k")
    assert [each.filter for each in query(draft).streams] == ["`v` > 1", "`v` > 1"]
