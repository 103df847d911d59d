import pyarrow as pa
import pytest

from braid.cql import bind, parse, sources
from braid.model.errors import BraidError, QueryError
from braid.model.query import OutputColumn, StreamRef
from tests.unit.cql.pointing import AB, SCHEMAS, A, B, bound, failing


def test_a_query_is_bound_to_its_streams_windows_and_key():
    query = bound(
        "SELECT a.k, o.Amount AS paid FROM a [RANGE 10 SECONDS], Orders [RANGE 1 HOUR] AS o "
        "WHERE a.k = o.k AND a.j = o.j"
    )
    assert query.streams == (
        StreamRef("a", "a", 10_000_000, ("k", "j")),
        StreamRef("Orders", "o", 3_600_000_000, ("k", "j")),
    )
    assert query.output == (OutputColumn("k", 0, "k"), OutputColumn("paid", 1, "Amount"))


def test_a_stream_joins_with_itself_under_two_aliases():
    query = bound("SELECT x.k FROM a [RANGE 1 DAY] x, a [RANGE 2 DAYS] y WHERE x.k = y.limit")
    assert query.sources() == ("a",)
    assert [stream.key for stream in query.streams] == [("k",), ("limit",)]


def test_names_come_out_as_the_schema_spells_them():
    query = bound(
        "SELECT AMOUNT, A.K FROM ORDERS [RANGE 1 DAY], A [RANGE 1 DAY] WHERE ORDERS.K=A.K"
    )
    assert [stream.alias for stream in query.streams] == ["Orders", "a"]
    assert [out.name for out in query.output] == ["Amount", "k"]


def test_a_name_spelled_exactly_wins_over_one_that_differs_in_case():
    schemas = {"a": pa.schema({"k": pa.int64(), "K": pa.int64(), "ts": pa.timestamp("us")})}
    text = "SELECT x.K FROM a [RANGE 1 DAY] x, a [RANGE 1 DAY] y WHERE x.K = y.k"
    query = bind(text, schemas, event_time="ts")
    assert [stream.key for stream in query.streams] == [("K",), ("k",)]


@pytest.mark.parametrize("name", ["`v`", '"v"', "V", "a.`v`", '"a".v', "`a`.`V`"])
def test_names_may_be_quoted_and_columns_qualified(name):
    # b is another stream without a column v, so that v alone is unambiguous
    schemas = {"a": SCHEMAS["a"], "b": pa.schema({"k": pa.int64(), "ts": pa.timestamp("us")})}
    query = bind(f"SELECT {name} {AB}", schemas, event_time="ts")
    assert query.output == (OutputColumn("v", 0, "v"),)


def test_a_star_stands_for_all_columns_of_its_stream():
    query = bound(f"SELECT b.*, a.k AS ak {AB}")
    assert [out.name for out in query.output] == [*SCHEMAS["b"].names, "ak"]


def test_a_star_alone_meets_the_event_time_of_every_stream():
    schemas = {
        "a": pa.schema({"k": pa.int64(), "ts": pa.timestamp("us")}),
        "b": pa.schema({"id": pa.int64(), "ts": pa.timestamp("us")}),
    }
    with pytest.raises(QueryError, match="two columns of the result are called 'ts'"):
        bind(f"SELECT * FROM {A}, {B} WHERE k = id", schemas, event_time="ts")


@pytest.mark.parametrize(
    ("marked", "message", "hint"),
    [
        ("SELECT a.k, «b.k» {AB}", "called 'k'", "b.k AS b_k"),
        ("SELECT a.k, «b.v AS K» {AB}", "called 'K'", "b.v AS b_v"),
        ("SELECT «*» {AB}", "called 'k'", "b.k AS b_k"),
        ("SELECT a.k, «a.*» {AB}", "called 'k'", "a.k AS a_k"),
    ],
)
def test_a_name_twice_in_the_result_is_refused(marked, message, hint):
    error = failing(marked.format(AB=AB))
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("event_time", "message", "hint"),
    [
        ("tz", "stream 'a' has no column 'tz'", "known: k, j"),
        ("TS", "stream 'a' has no column 'TS'", "did you mean 'ts'?"),
        ("k", "'k' of stream 'a' is int64, not a timestamp", "CAST"),
    ],
)
def test_the_event_time_must_be_a_timestamp_of_every_stream(event_time, message, hint):
    with pytest.raises(BraidError) as caught:
        bind(f"SELECT a.k {AB}", SCHEMAS, event_time=event_time)
    assert not isinstance(caught.value, QueryError)  # the text is not at fault
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_the_event_time_must_not_be_two_columns():
    twice = pa.schema([("k", pa.int64()), *[("ts", pa.timestamp("us"))] * 2])
    with pytest.raises(BraidError, match="two columns 'ts'"):
        bind(f"SELECT a.k {AB}", {"a": twice, "b": twice}, event_time="ts")


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("us", tz="UTC")])
def test_any_timestamp_will_do_for_event_time(kind):
    schema = pa.schema({"k": pa.int64(), "at": kind})
    assert bind(f"SELECT a.k {AB}", {"a": schema, "b": schema}, event_time="at")


def test_sources_are_known_without_schemas():
    text = "SELECT x.k FROM a [RANGE 1 DAY] x, `b c` [RANGE 1 DAY], a [RANGE 1 DAY] z"
    assert sources(text) == ("a", "b c")


def test_the_unbound_tree_keeps_names_as_written():
    syntax = parse(f"SELECT A.k AS `x y` {AB}")
    assert syntax.select[0].what.stream.text == "A"
    assert syntax.select[0].alias.text == "x y"
