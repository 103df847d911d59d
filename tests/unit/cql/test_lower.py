import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

from braid.cql import bind
from braid.model.expression import FUNCTIONS, Call, Column, Expression, Literal
from braid.model.query import Derived
from tests.unit.cql.pointing import AB, SCHEMAS, bound, failing, hint_of

AV, BV = Column(0, "v"), Column(1, "v")
AK, BK = Column(0, "k"), Column(1, "k")
AN, BN = Column(0, "name"), Column(1, "name")


def value(expression: str) -> Expression:
    return bound(f"SELECT {expression} AS x {AB}").output[0].value


def null(inner: Expression) -> Expression:
    return Call("is null", (inner,))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.v + b.v", Call("+", (AV, BV))),
        ("a.v - b.v * 2", Call("-", (AV, Column(1, "`v` * 2")))),
        ("(a.v - b.v) * 2", Call("*", (Call("-", (AV, BV)), Literal(2)))),
        ("a.k / b.k % 3", Call("%", (Call("/", (AK, BK)), Literal(3)))),
        ("-(a.v + b.v)", Call("negate", (Call("+", (AV, BV)),))),
        ("+(a.v + b.v)", Call("+", (AV, BV))),
        ("a.v = b.v", Call("=", (AV, BV))),
        ("a.v != b.v", Call("<>", (AV, BV))),
        ("!(a.v >= b.v)", Call("not", (Call(">=", (AV, BV)),))),
        ("a.name || '-' || b.name", Call("concat", (Column(0, "`name` || '-'"), BN))),
        ("a.name || b.name || '-'", Call("concat", (AN, BN, Literal("-")))),
        (
            "concat(a.name, concat(b.name, '-'))",
            Call("concat", (AN, Column(1, "concat(`name`, '-')"))),
        ),
        ("coalesce(a.v, b.v) IS NULL", null(Call("coalesce", (AV, BV)))),
        ("(a.v + b.v) IS NOT NULL", Call("not", (null(Call("+", (AV, BV))),))),
        ("a.k IN (b.k, 3)", Call("in", (AK, BK, Literal(3)))),
        ("a.k NOT IN (b.k)", Call("not", (Call("in", (AK, BK)),))),
        (
            "a.v BETWEEN b.v AND b.k",
            Call("and", (Call(">=", (AV, BV)), Call("<=", (AV, BK)))),
        ),
        (
            "a.v NOT BETWEEN b.v AND b.k",
            Call("not", (Call("and", (Call(">=", (AV, BV)), Call("<=", (AV, BK)))),)),
        ),
        ("IF(a.v > b.v, 1, 0)", Call("case", (Call(">", (AV, BV)), Literal(1), Literal(0)))),
        ("nullif(a.k, b.k)", Call("case", (Call("=", (AK, BK)), Literal(None), AK))),
        ("nvl(a.k, b.k)", Call("coalesce", (AK, BK))),
        ("nvl2(a.k, b.k, 0)", Call("case", (Column(0, "`k` IS NOT NULL"), BK, Literal(0)))),
        (
            "CASE a.k WHEN b.k THEN 'same' WHEN 3 THEN 'three' END",
            Call(
                "case",
                (Call("=", (AK, BK)), Literal("same"), Column(0, "`k` = 3"), Literal("three")),
            ),
        ),
        (
            "CASE WHEN a.k = b.k THEN a.v ELSE b.v END",
            Call("case", (Call("=", (AK, BK)), AV, BV)),
        ),
        (
            "a.k <=> b.k",
            Call(
                "coalesce",
                (
                    Call("=", (AK, BK)),
                    Call("and", (Column(0, "`k` IS NULL"), Column(1, "`k` IS NULL"))),
                ),
            ),
        ),
        (
            "(a.v > b.v) IS NOT TRUE",
            Call("not", (Call("coalesce", (Call(">", (AV, BV)), Literal(False))),)),
        ),
        (
            "(a.v > b.v) IS FALSE",
            Call("coalesce", (Call("not", (Call(">", (AV, BV)),)), Literal(False))),
        ),
        ("mod(a.k, b.k)", Call("%", (AK, BK))),
        ("pow(a.v, b.v)", Call("power", (AV, BV))),
        ("round(a.v + b.v, 2)", Call("round", (Call("+", (AV, BV)), Literal(2)))),
        ("greatest(a.v, b.v, 0)", Call("greatest", (AV, BV, Literal(0)))),
        ("Char_Length(a.name || b.name)", Call("length", (Call("concat", (AN, BN)),))),
        ("log(a.v * b.v)", Call("ln", (Call("*", (AV, BV)),))),
        ("isnull(a.v + b.v)", null(Call("+", (AV, BV)))),
        (
            "a.v > 1 AND b.v > 1 AND a.k > 1",
            Call("and", (Column(0, "`v` > 1 AND `k` > 1"), Column(1, "`v` > 1"))),
        ),
        (
            "NOT (a.v > b.v OR b.k = 1)",
            Call("not", (Call("or", (Call(">", (AV, BV)), Column(1, "`k` = 1"))),)),
        ),
        ("a.ts - b.ts", Call("-", (Column(0, "ts"), Column(1, "ts")))),
    ],
)
def test_what_needs_several_streams_is_put_into_our_functions(
    expression: str, expected: object
) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("5", 5),
        ("-5", -5),
        ("- -5", 5),
        ("5L", 5),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", Decimal(2**63)),
        ("1.50", Decimal("1.50")),
        (".5", Decimal("0.5")),
        ("2BD", Decimal(2)),
        ("1e3", 1000.0),
        ("2.5D", 2.5),
        ("'it''s'", "it's"),
        (r"'a\\b'", "a\\b"),
        (r"r'a\b'", r"a\b"),
        ("TRUE", True),
        ("null", None),
        ("DATE '2026-01-31'", dt.date(2026, 1, 31)),
        ("TIMESTAMP '2026-01-31 10:00:00Z'", dt.datetime(2026, 1, 31, 10, tzinfo=dt.UTC)),
        ("TIMESTAMP '2026-01-31 10:00:00+01:00'", dt.datetime(2026, 1, 31, 9, tzinfo=dt.UTC)),
        ("TIMESTAMP_NTZ '2026-01-31 10:00:00.5'", dt.datetime(2026, 1, 31, 10, 0, 0, 500_000)),
        ("INTERVAL 90 SECONDS", dt.timedelta(seconds=90)),
        ("- INTERVAL '90' SECONDS", dt.timedelta(seconds=-90)),
        ("INTERVAL 1 WEEK", dt.timedelta(days=7)),
    ],
)
def test_constants_have_values_of_python(expression: str, expected: object) -> None:
    found = value(expression)
    assert isinstance(found, Literal)
    assert found.value == expected
    assert type(found.value) is type(expected)


@pytest.mark.parametrize(
    "expression",
    [
        "CAST('1' AS INT)",
        "TIMESTAMP '2026-01-31 10:00:00'",  # another moment in each session
        "DATE '2026-02-31'",
        "INTERVAL 1 MONTH",
        "'a' 'b'",
        "x'1F'",
        "current_user",
        "date_add(DATE '2026-01-31', 1)",
    ],
)
def test_constants_that_only_spark_knows_are_of_the_first_stream(expression: str) -> None:
    query = bound(f"SELECT coalesce(a.v + b.v, {expression}) {AB}")
    (derived,) = query.streams[0].derived
    made = Call("coalesce", (Call("+", (AV, BV)), Column(0, derived.name)))
    assert query.output[0].value == made


def test_the_largest_parts_of_one_stream_are_columns_that_spark_computes() -> None:
    query = bound(
        f"SELECT substring(a.name, 1, 3) || upper(b.name), (a.v + 1) * b.v, a.v + 1 AS x {AB}"
    )
    assert query.streams[0].derived == (
        Derived("`v` + 1", "`v` + 1"),
        Derived("substring(`name`, 1, 3)", "substring(`name`, 1, 3)"),
    )
    assert query.streams[1].derived == (Derived("upper(`name`)", "upper(`name`)"),)
    assert query.output[2].value == Column(0, "`v` + 1")


def test_derived_columns_whose_texts_differ_in_case_alone_have_different_names() -> None:
    schema = SCHEMAS["a"].append(pa.field("UPPER(`NAME`)", pa.string()))
    query = bind(
        "SELECT a.name || 'x' AS p, a.name || 'X' AS q, upper(a.name) AS r, "
        f"a.`upper(``name``)` s {AB}",
        {"a": schema, "b": SCHEMAS["b"]},
        event_time="ts",
    )
    names = [*schema.names, *(derived.name for derived in query.streams[0].derived)]
    assert len({name.lower() for name in names}) == len(names)
    assert [out.value for out in query.output] == [
        Column(0, "`name` || 'x''"),
        Column(0, "`name` || 'X'"),
        Column(0, "upper(`name`)'"),
        Column(0, "UPPER(`NAME`)"),
    ]


@pytest.mark.parametrize(
    ("marked", "what"),
    [
        (f"SELECT «substring(a.name || b.name, 1, 2)» {AB}", "the function substring"),
        (f"SELECT 1 + «my_function(a.v, b.v)» {AB}", "the function my_function"),
        (f"SELECT «CAST(a.v + b.v AS INT)» {AB}", "the function cast"),
        (f"SELECT a.k {AB} AND «a.name LIKE b.name»", "LIKE"),
        (f"SELECT a.k {AB} AND NOT («a.name RLIKE b.name»)", "RLIKE"),
        (f"SELECT «a.tags[b.k]» {AB}", "[ ]"),
        (f"SELECT «a.k DIV b.k» {AB}", "DIV"),
        (f"SELECT «a.k & b.k» {AB}", "&"),
        (f"SELECT «round(a.v, b.v, 3)» {AB}", "the function round"),
        (f"SELECT «log(a.v, b.v)» {AB}", "the function log"),
        (f"SELECT «transform(a.tags, x -> x || b.name)» {AB}", "the function transform"),
        (f"SELECT «struct(a.k AS x, b.k)» {AB}", "the function struct"),
    ],
)
def test_what_no_worker_can_compute_over_several_streams_is_called_by_name(
    marked: str, what: str
) -> None:
    error = failing(marked)
    assert error.message == f"{what} cannot be computed over several streams"
    assert "one stream at a time" in hint_of(error)


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        (f"SELECT a.v + b.v + «1e999» {AB}", "too large"),
        (f"SELECT a.v + b.v + «{'9' * 39}» {AB}", "too many digits"),
        (f"SELECT a.v + b.v + «{'9' * 5000}» {AB}", "too many digits"),
        (f"SELECT a.v + b.v + «9999999999999999999L» {AB}", "does not fit its type"),
        (f"SELECT a.ts - b.ts + «INTERVAL 9999999999 DAYS» {AB}", "too long"),
    ],
)
def test_numbers_have_their_limits(marked: str, message: str) -> None:
    assert message in failing(marked).message


def test_only_known_functions_come_out() -> None:
    query = bound(
        f"SELECT CASE WHEN a.v > b.v THEN nvl(a.v, b.v) ELSE -abs(a.v - b.v) END AS x {AB}"
    )

    def functions(expression: Expression) -> Iterator[tuple[str, int]]:
        if isinstance(expression, Call):
            yield expression.function, len(expression.arguments)
            for each in expression.arguments:
                yield from functions(each)

    for name, count in functions(query.output[0].value):
        fewest, most = FUNCTIONS[name]
        assert fewest <= count <= (most or count)


@pytest.mark.parametrize(
    "difference",
    [
        "datediff(b.ts, a.ts)",
        "date_diff(b.ts, a.ts)",
        "timestampdiff(MINUTE, a.ts, b.ts)",
        "date_diff(DAY, a.ts, b.ts)",
    ],
)
def test_a_difference_over_two_streams_is_a_subtraction(difference: str) -> None:
    error = failing(f"SELECT «{difference}» AS x {AB}")
    assert "cannot be computed over several streams" in error.message
    assert "b.ts - a.ts" in hint_of(error)
