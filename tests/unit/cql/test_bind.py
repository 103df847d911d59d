import pyarrow as pa
import pytest

from braid.cql import bind, parse, sources
from braid.cql.term import ColumnName
from braid.model.errors import BraidError, QueryError
from braid.model.expression import Call, Column, Literal
from braid.model.query import UNBOUNDED_US, History, Key, Output, StreamRef
from tests.unit.cql.pointing import AB, SCHEMAS, A, B, C, bound, failing, hint_of


def test_a_query_is_bound_to_its_streams_windows_and_keys() -> None:
    query = bound(
        "SELECT a.k, o.Amount AS paid FROM a [RANGE 10 SECONDS], Orders [RANGE 1 HOUR] AS o "
        "WHERE a.k = o.k AND a.j = o.j"
    )
    assert query.streams == (
        StreamRef("a", "a", 10_000_000),
        StreamRef("Orders", "o", 3_600_000_000),
    )
    assert query.keys == (
        Key((Column(0, "k"), Column(1, "k"))),
        Key((Column(0, "j"), Column(1, "j"))),
    )
    assert query.output == (Output("k", Column(0, "k")), Output("paid", Column(1, "Amount")))
    assert (query.conditions, query.bounds, query.grouping) == ((), (), None)


def test_a_stream_joins_with_itself_under_two_aliases() -> None:
    query = bound("SELECT x.k FROM a [RANGE 1 DAY] x, a [RANGE 2 DAYS] y WHERE x.k = y.limit")
    assert query.sources() == ("a",)
    assert query.keys == (Key((Column(0, "k"), Column(1, "limit"))),)


@pytest.mark.parametrize(
    "joined",
    [
        f"{A} JOIN {B} ON a.k = b.k JOIN {C} ON b.j = c.j",
        f"{A} INNER JOIN {B} ON a.k = b.k, {C} WHERE b.j = c.j",
        f"{A}, {B} CROSS JOIN {C} WHERE a.k = b.k AND b.j = c.j",
        f"{A} JOIN {B} USING (k) JOIN {C} ON (c.j = b.j)",
        f"{A} JOIN {B} JOIN {C} ON a.k = b.k AND c.j = b.j",
        "a AS a [RANGE 1 DAY], b b [RANGE 1 DAY], c [RANGE 1 DAY] AS c "
        "WHERE (a.k = b.k) AND (b.j = c.j)",
    ],
)
def test_joins_may_be_written_as_in_sql(joined: str) -> None:
    query = bound(f"SELECT a.k FROM {joined}")
    assert query == bound(f"SELECT a.k FROM {A}, {B}, {C} WHERE a.k = b.k AND b.j = c.j")


def test_using_makes_one_column_of_two() -> None:
    schemas = {
        name: pa.schema({"k": pa.int64(), "ts": pa.timestamp("us"), name: pa.int64()})
        for name in "ab"
    }
    text = f"SELECT k, a, b FROM {A} JOIN {B} USING (K, ts)"
    query = bind(text, schemas, event_time="ts")
    assert [out.value for out in query.output] == [
        Column(0, "k"),
        Column(0, "a"),
        Column(1, "b"),
    ]
    star = bind(text.replace("k, a, b", "*"), schemas, event_time="ts")
    assert [out.name for out in star.output] == ["k", "ts", "a", "b"]


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        (f"SELECT a.k FROM {A} JOIN {B} USING («zz»)", "unknown column 'zz'"),
        (f"SELECT a.k FROM {A} JOIN {B} ON a.k = b.k JOIN {C} USING («j»)", "ambiguous"),
    ],
)
def test_the_columns_of_using_are_looked_up_on_both_sides(marked: str, message: str) -> None:
    assert message in failing(marked).message


def test_names_come_out_as_the_schema_spells_them() -> None:
    query = bound(
        "SELECT AMOUNT, A.K FROM ORDERS [RANGE 1 DAY], A [RANGE 1 DAY] WHERE ORDERS.K=A.K"
    )
    assert [stream.alias for stream in query.streams] == ["Orders", "a"]
    assert [out.name for out in query.output] == ["Amount", "k"]


def test_a_name_spelled_exactly_wins_over_one_that_differs_in_case() -> None:
    schemas = {"a": pa.schema({"k": pa.int64(), "K": pa.int64(), "ts": pa.timestamp("us")})}
    text = "SELECT x.K FROM a [RANGE 1 DAY] x, a [RANGE 1 DAY] y WHERE x.K = y.k"
    query = bind(text, schemas, event_time="ts")
    assert query.keys == (Key((Column(0, "K"), Column(1, "k"))),)


@pytest.mark.parametrize("name", ["`v`", '"v"', "V", "a.`v`", '"a".v', "`a`.`V`", "(a.v)"])
def test_names_may_be_quoted_and_columns_qualified(name: str) -> None:
    # b is another stream without a column v, so that v alone is unambiguous
    schemas = {"a": SCHEMAS["a"], "b": pa.schema({"k": pa.int64(), "ts": pa.timestamp("us")})}
    query = bind(f"SELECT {name} {AB}", schemas, event_time="ts")
    assert query.output == (Output("v", Column(0, "v")),)


def test_a_star_stands_for_all_columns_of_its_stream() -> None:
    query = bound(f"SELECT b.*, a.k AS ak {AB}")
    assert [out.name for out in query.output] == [*SCHEMAS["b"].names, "ak"]


@pytest.mark.parametrize(
    ("marked", "message", "hint"),
    [
        ("SELECT a.k, «b.k» {AB}", "called 'k'", "b.k AS b_k"),
        ("SELECT a.k, «b.v AS K» {AB}", "called 'K'", "b.v AS b_v"),
        ("SELECT a.v + b.v, «(a.v + b.v)» {AB}", "called 'a.v + b.v'", "anew, with AS"),
    ],
)
def test_a_name_twice_in_the_result_is_refused(marked: str, message: str, hint: str) -> None:
    error = failing(marked.format(AB=AB))
    assert message in error.message
    assert hint in hint_of(error)


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("a.v", "v"),
        ("a.v AS `x y`", "x y"),
        ("a.v+b.v", "a.v + b.v"),
        ("UPPER(a.name)", "upper(a.name)"),
        ("3", "3"),
        ("a.s.x", "a.s.x"),
    ],
)
def test_an_expression_without_alias_is_called_by_its_text(item: str, name: str) -> None:
    assert bound(f"SELECT {item} {AB}").output[0].name == name


def test_a_constant_needs_no_stream() -> None:
    query = bound(f"SELECT 3 AS three, 'x' AS x, NULL AS nothing, 2 * 3 AS six {AB}")
    assert [out.value for out in query.output] == [
        Literal(3),
        Literal("x"),
        Literal(None),
        Call("*", (Literal(2), Literal(3))),
    ]


def test_a_window_may_be_without_end_or_count_rows() -> None:
    query = bound(
        "SELECT a.k FROM a [UNBOUNDED], b [RANGE UNBOUNDED], c [PARTITION BY K, j ROWS 3] "
        "WHERE a.k = b.k AND b.k = c.k"
    )
    assert [stream.window_us for stream in query.streams] == [UNBOUNDED_US] * 3
    assert query.streams[2].history == History(("k", "j"), 3)


@pytest.mark.parametrize(
    ("window", "where", "missing"),
    [
        ("PARTITION BY j ROWS 1", "a.k = b.k", "k"),
        ("PARTITION BY k ROWS 1", "a.k = b.k AND a.j = b.j", "j"),
        ("PARTITION BY k ROWS 1", "a.k = b.k AND a.name = upper(b.name)", "name"),
    ],
)
def test_a_partition_must_lie_within_its_key(window: str, where: str, missing: str) -> None:
    error = failing(f"SELECT a.k FROM {A}, b «[{window}]» WHERE {where}")
    assert f"PARTITION BY leaves out {missing}," in error.message
    assert f"{missing} ROWS 1]" in hint_of(error)


def test_a_partition_may_be_finer_than_its_key() -> None:
    query = bound(f"SELECT a.k FROM {A}, b [PARTITION BY name, j ROWS 1] WHERE a.k = b.j + 0L")
    assert query.streams[1].history == History(("name", "j"), 1)


@pytest.mark.parametrize(
    ("event_time", "message", "hint"),
    [
        ("tz", "stream 'a' has no column 'tz'", "known: k, j"),
        ("TS", "stream 'a' has no column 'TS'", "did you mean 'ts'?"),
        ("k", "'k' of stream 'a' is int64, not a timestamp", "timestamp_millis(k)"),
    ],
)
def test_the_event_time_must_be_a_timestamp_of_every_stream(
    event_time: str, message: str, hint: str
) -> None:
    with pytest.raises(BraidError) as caught:
        bind(f"SELECT a.k {AB}", SCHEMAS, event_time=event_time)
    assert not isinstance(caught.value, QueryError)  # the text is not at fault
    assert message in caught.value.message
    assert hint in hint_of(caught.value)


def test_the_event_time_must_not_be_two_columns() -> None:
    twice = pa.schema([("k", pa.int64()), *[("ts", pa.timestamp("us"))] * 2])
    with pytest.raises(BraidError, match="two columns 'ts'"):
        bind(f"SELECT a.k {AB}", {"a": twice, "b": twice}, event_time="ts")


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("us", tz="UTC")])
def test_any_timestamp_will_do_for_event_time(kind: object) -> None:
    schema = pa.schema({"k": pa.int64(), "at": kind})
    assert bind(f"SELECT a.k {AB}", {"a": schema, "b": schema}, event_time="at")


def test_sources_are_known_without_schemas() -> None:
    text = "SELECT x.k FROM a [RANGE 1 DAY] x, `b c` [RANGE 1 DAY], a [RANGE 1 DAY] z"
    assert sources(text) == ("a", "b c")


def test_the_unbound_tree_keeps_names_as_written() -> None:
    item = parse(f"SELECT A.k AS `x y` {AB}").select[0]
    assert isinstance(item.what, ColumnName)
    assert [part.text for part in item.what.parts] == ["A", "k"]
    assert item.alias
    assert item.alias.text == "x y"


STARRED = {
    "a": pa.schema({"k": pa.int64(), "x": pa.int64(), "ts": pa.timestamp("us")}),
    "b": pa.schema({"K": pa.int64(), "y": pa.int64(), "ts": pa.timestamp("us")}),
}


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("*", ["a_k", "x", "a_ts", "b_K", "y", "b_ts"]),
        ("a.*, b.y", ["k", "x", "ts", "y"]),
        ("a.*, b.ts", ["k", "x", "a_ts", "ts"]),
        ("b.y AS x, a.*", ["x", "k", "a_x", "ts"]),
        ("b.*, a.*", ["b_K", "y", "b_ts", "a_k", "x", "a_ts"]),
    ],
)
def test_a_star_names_its_stream_where_names_clash(select: str, names: list[str]) -> None:
    query = bind(f"SELECT {select} FROM {A}, {B} WHERE a.k = b.k", STARRED, event_time="ts")
    assert [out.name for out in query.output] == names
    assert bind(query.text, STARRED, event_time="ts") == query


@pytest.mark.parametrize("select", ["*, a.x AS a_ts", "a.*, a.*"])
def test_a_star_whose_longer_names_clash_too_is_refused(select: str) -> None:
    text = f"SELECT {select} FROM {A}, {B} WHERE a.k = b.k"
    with pytest.raises(QueryError, match="two columns of the result are called 'a_") as refused:
        bind(text, STARRED, event_time="ts")
    assert "AS" in (refused.value.hint or "")
