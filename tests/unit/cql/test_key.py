import pyarrow as pa
import pytest

from braid.cql import bind
from braid.cql.key import classes
from braid.model.errors import QueryError
from tests.unit.cql.pointing import A, B, C, bound, failing, hint_of

ABC = f"SELECT a.k FROM {A}, {B}, {C}"


def keys_of(where: str) -> list[list[str]]:
    query = bound(f"{ABC} WHERE {where}")
    aliases = [stream.alias for stream in query.streams]
    return [[f"{aliases[c.stream]}.{c.column}" for c in key.columns] for key in query.keys]


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("a.k = b.k AND b.k = c.k", [["a.k", "b.k", "c.k"]]),
        ("c.k = a.k AND (c.k = b.k)", [["a.k", "b.k", "c.k"]]),
        ("a.k = b.k AND a.k = c.k AND b.k = c.k", [["a.k", "b.k", "c.k"]]),
        ("a.k = b.k AND b.j = c.j", [["a.k", "b.k"], ["b.j", "c.j"]]),
        ("b.j = c.j AND a.k = b.k", [["b.j", "c.j"], ["a.k", "b.k"]]),
        (
            "b.j = a.j AND b.j = c.j AND c.k = a.k AND b.k = c.k",
            [["a.j", "b.j", "c.j"], ["a.k", "b.k", "c.k"]],
        ),
        (
            "(a.k = b.k AND (a.name = c.name)) AND b.k = c.k AND b.name = (a.name)",
            [["a.k", "b.k", "c.k"], ["a.name", "b.name", "c.name"]],
        ),
        ("a.k = b.limit AND c.k = b.limit", [["a.k", "b.limit", "c.k"]]),
        ("a.k + 1 = b.k AND b.k = c.k", [["a.`k` + 1", "b.k", "c.k"]]),
        (
            "upper(a.name) = UPPER(b.NAME) AND b.k = c.k",
            [["a.upper(`name`)", "b.upper(`name`)"], ["b.k", "c.k"]],
        ),
        ("a.ts = b.ts AND b.ts = c.ts", [["a.ts", "b.ts", "c.ts"]]),
        ("a.s.x = b.k AND b.k = c.k", [["a.`s`.`x`", "b.k", "c.k"]]),
    ],
)
def test_equal_columns_make_keys_in_order_of_appearance(
    where: str, keys: list[list[str]]
) -> None:
    assert keys_of(where) == keys


def test_two_equal_columns_of_one_stream_are_a_filter_of_it() -> None:
    query = bound(
        f"{ABC} WHERE a.k = b.k AND b.k = c.k AND c.k = a.limit AND c.v > 1 AND c.k = a.j + 0L"
    )
    assert [column.column for column in query.keys[0].columns] == ["k", "k", "k"]
    assert query.streams[0].filter == "`k` = `limit` AND `k` = (`j` + 0L)"
    assert query.streams[2].filter == "`v` > 1"
    assert query.streams[0].derived == ()


def test_an_equality_within_one_stream_is_a_filter() -> None:
    query = bound(f"{ABC} WHERE a.k = b.k AND b.k = c.k AND a.k = a.limit")
    assert query.streams[0].filter == "`k` = `limit`"


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        (f"SELECT a.k FROM {A}, «b» [RANGE 1 DAY]", "connects a with b"),
        (f"SELECT a.k FROM {A}, «b» [RANGE 1 DAY], {C} WHERE a.k = c.k", "a, c with b"),
        (
            f"SELECT a.k FROM {A}, {B}, «c» [RANGE 1 DAY], {A} d WHERE a.k = b.k AND c.k = d.k",
            "connects a, b with c, d",
        ),
        (f"SELECT a.k FROM {A}, «b» [RANGE 1 DAY] WHERE a.v < b.v", "connects a with b"),
        (f"SELECT a.k FROM {A} CROSS JOIN «b» [RANGE 1 DAY]", "connects a with b"),
        (f"{ABC} WHERE a.k = b.k AND «b.k = c.v»", "b.k is int64, but c.v is double"),
        (f"{ABC} WHERE a.k = b.k AND «b.name = c.ts»", "is string, but c.ts is timestamp[us]"),
        (f"{ABC} WHERE «a.s = b.s» AND b.s = c.s", "a.s in a key cannot be of type struct"),
        (f"{ABC} WHERE «a.k = b.tags» AND b.k = c.k", "b.tags in a key cannot be of type list"),
    ],
)
def test_what_makes_no_key_is_refused(marked: str, message: str) -> None:
    assert message in failing(marked).message


def test_types_that_differ_come_with_the_cure() -> None:
    assert "CAST" in hint_of(failing(f"SELECT a.k FROM {A}, {B} WHERE «a.k = b.v»"))


def test_classes_are_in_order_of_first_appearance() -> None:
    pairs = [("a", "b"), ("x", "y"), ("p", "q"), ("q", "r"), ("r", "y"), ("b", "c")]
    assert classes(pairs) == [["a", "b", "c"], ["x", "y", "p", "q", "r"]]


def wide(where: str, **kinds: pa.DataType) -> str:
    """The key of streams whose columns `k` have these types, as the normal form has it."""
    time = pa.timestamp("us", "UTC")
    schemas = {name: pa.schema({"k": kind, "ts": time}) for name, kind in kinds.items()}
    streams = ", ".join(f"{name} [RANGE 1 DAY]" for name in kinds)
    query = bind(f"SELECT a.ts FROM {streams} WHERE {where}", schemas, event_time="ts")
    assert bind(query.text, schemas, event_time="ts") == query
    return query.text.partition(" WHERE ")[2]


def test_integers_of_a_key_meet_in_the_widest_of_all_streams() -> None:
    kinds = {"a": pa.int8(), "b": pa.int32(), "c": pa.int64()}
    text = wide("a.k = b.k AND b.k = c.k", **kinds)
    assert text == "cast(a.k AS BIGINT) = cast(b.k AS BIGINT) AND cast(b.k AS BIGINT) = c.k"


def test_decimals_of_a_key_meet_in_one_that_holds_all_their_digits() -> None:
    kinds = {"a": pa.decimal128(10, 2), "b": pa.decimal128(12, 3), "c": pa.decimal128(9, 0)}
    text = wide("a.k = b.k AND b.k = c.k", **kinds)
    assert text == "cast(a.k AS decimal(12, 3)) = b.k AND b.k = cast(c.k AS decimal(12, 3))"


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (pa.int32(), pa.float64(), "a.k is int32, but b.k is double"),
        (pa.string(), pa.int64(), "a.k is string, but b.k is int64"),
        (pa.int64(), pa.decimal128(20, 0), "a.k is int64, but b.k is decimal128"),
        (pa.float32(), pa.float64(), "a.k is float, but b.k is double"),
        (pa.decimal128(38, 0), pa.decimal128(10, 2), "38 digits before the point and 2 after"),
    ],
)
def test_keys_that_no_type_holds_without_loss_are_refused(
    left: pa.DataType, right: pa.DataType, words: str
) -> None:
    with pytest.raises(QueryError, match=words) as refused:
        wide("a.k = b.k", a=left, b=right)
    assert "CAST" in (refused.value.hint or "")
