import pyarrow as pa
import pytest

from braid.cql import bind
from braid.model.errors import QueryError
from tests.unit.cql.pointing import AB, A, failing, hint_of


@pytest.mark.parametrize(
    ("marked", "message", "hint"),
    [
        (f"SELECT a.k FROM {A}, «ordrs» [RANGE 1 DAY]", "unknown stream 'ordrs'", "'Orders'?"),
        (f"SELECT a.k FROM {A}, «zzz» [RANGE 1 DAY]", "unknown stream 'zzz'", "known: a, b, c"),
        (f"SELECT «zzz».k {AB}", "unknown stream 'zzz'", "known: a, b"),
        (f"SELECT 1 + abs(«zzz».k) {AB}", "unknown stream 'zzz'", "known: a, b"),
        (f"SELECT «zzz».* {AB}", "unknown stream 'zzz'", "known: a, b"),
        (f"SELECT x.k FROM {A} x, {A} y WHERE «a».k = y.k", "unknown stream 'a'", "called 'x'"),
        (f"SELECT a.«nam» {AB}", "unknown column 'nam' of stream 'a'", "did you mean 'name'?"),
        (f"SELECT «nam» {AB}", "unknown column 'nam'", "did you mean 'name'?"),
        (f"SELECT a.«`x y`» {AB}", "unknown column 'x y' of stream 'a'", "known: k, j"),
        (f"SELECT «window_end» {AB}", "unknown column 'window_end'", "GROUP BY"),
        (f"SELECT «name» {AB}", "ambiguous column 'name'", "it may mean a.name or b.name"),
        (f'SELECT a.k {AB} AND a.name = «"xyz"»', "unknown column 'xyz'", "single quotes"),
        (f"SELECT a.s.«y» {AB}", "unknown field 'y'", "known: x"),
        (f"SELECT a.k.«y» {AB}", "a.k is int64, without a field 'y'", "only structs"),
        (f"SELECT a.k FROM {A}, «a» [RANGE 1 DAY]", "two streams are called 'a'", "AS a2"),
        (f"SELECT a.k FROM {A} x, {A} AS «X»", "two streams are called 'X'", "AS a2"),
        (
            f"SELECT a.k FROM {A}, b [PARTITION BY «kk» ROWS 1] WHERE a.k = b.k",
            "unknown column 'kk' of stream 'b'",
            "'k'?",
        ),
    ],
)
def test_a_name_that_means_no_single_thing_is_pointed_at(
    marked: str, message: str, hint: str
) -> None:
    error = failing(marked)
    assert error.message == message
    assert hint in hint_of(error)


def test_a_stream_that_matches_two_names_but_for_case_is_ambiguous() -> None:
    schema = pa.schema({"k": pa.int64(), "ts": pa.timestamp("us")})
    text = "SELECT x.k FROM AA [RANGE 1 DAY] x, aa [RANGE 1 DAY] y WHERE x.k = y.k"
    with pytest.raises(QueryError, match="ambiguous stream 'AA'"):
        bind(text, {"aA": schema, "aa": schema}, event_time="ts")


def test_a_schema_with_one_name_twice_makes_that_column_ambiguous() -> None:
    schema = pa.schema([("k", pa.int64()), ("k", pa.int64()), ("ts", pa.timestamp("us"))])
    with pytest.raises(QueryError, match="two columns of that name"):
        bind(f"SELECT a.ts {AB}", {"a": schema, "b": schema}, event_time="ts")
