"""What Spark answers, noted where a reader may doubt it or DuckDB says something else.

Each case is Spark's SQL, the same as an expression, and the value with its Arrow type. Where
the engine's type is wider than Spark's (integers compute in 64 bits) the engine's is noted.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from braid.model.expression import Call, Expression, Literal

NAN, INFINITY = float("nan"), float("inf")
DOUBLE, BOOL, BIGINT, STRING = pa.float64(), pa.bool_(), pa.int64(), pa.string()


def call(function: str, *arguments: Any) -> Call:
    """A call; arguments that are no expressions are constants."""
    parts = (a if isinstance(a, Expression) else Literal(a) for a in arguments)
    return Call(function, tuple(parts))


def _on(day: int, hour: int = 0) -> dt.datetime:
    return dt.datetime(2024, 1, day, hour, tzinfo=dt.UTC)


ANSWERS: list[tuple[str, Expression, Any, pa.DataType]] = [
    ("1 / 2", call("/", 1, 2), 0.5, DOUBLE),
    ("CAST(1.5 AS DECIMAL(3, 1)) / 2D", call("/", Decimal("1.5"), 2.0), 0.75, DOUBLE),
    ("-7 % 3", call("%", -7, 3), -1, BIGINT),
    ("7 % -3", call("%", 7, -3), 1, BIGINT),
    ("-5.5D % 2D", call("%", -5.5, 2.0), -1.5, DOUBLE),
    ("-5.50 % 2", call("%", Decimal("-5.50"), 2), Decimal("-1.50"), pa.decimal128(3, 2)),
    ("try_divide(1, 0)", call("/", 1, 0), None, DOUBLE),
    ("try_divide(1D, 0D)", call("/", 1.0, 0.0), None, DOUBLE),
    ("try_mod(1L, 0L)", call("%", 1, 0), None, BIGINT),
    ("try_mod(1D, 0D)", call("%", 1.0, 0.0), None, DOUBLE),
    ("abs(-128S)", call("abs", -128), 128, BIGINT),
    # Decimals: digits as Spark counts them, and rounding half away from zero.
    ("1.10 + 1", call("+", Decimal("1.10"), 1), Decimal("2.10"), pa.decimal128(4, 2)),
    ("1.10 * 2", call("*", Decimal("1.10"), 2), Decimal("2.20"), pa.decimal128(5, 2)),
    ("1.5 - 0.25D", call("-", Decimal("1.5"), 0.25), 1.25, DOUBLE),
    (
        f"9.{'0' * 36}4 + 1.{'0' * 36}1",
        call("+", Decimal(f"9.{'0' * 36}4"), Decimal(f"1.{'0' * 36}1")),
        Decimal(f"10.{'0' * 35}1"),
        pa.decimal128(38, 36),
    ),
    (
        f"1234567890123456789012345678.{'0' * 10} * 2.{'0' * 10}",
        call(
            "*", Decimal(f"1234567890123456789012345678.{'0' * 10}"), Decimal(f"2.{'0' * 10}")
        ),
        Decimal("2469135780246913578024691356"),
        pa.decimal128(38, 8),
    ),
    # NaN equals itself and is above all else.
    ("double('NaN') = double('NaN')", call("=", NAN, NAN), True, BOOL),
    ("double('NaN') <> double('NaN')", call("<>", NAN, NAN), False, BOOL),
    ("double('NaN') > double('Infinity')", call(">", NAN, INFINITY), True, BOOL),
    ("double('NaN') <= double('NaN')", call("<=", NAN, NAN), True, BOOL),
    ("1D < double('NaN')", call("<", 1.0, NAN), True, BOOL),
    ("double('NaN') < 1D", call("<", NAN, 1.0), False, BOOL),
    ("-0D = 0D", call("=", -0.0, 0.0), True, BOOL),
    ("greatest(1D, double('NaN'), NULL)", call("greatest", 1.0, NAN, None), NAN, DOUBLE),
    ("least(1D, double('NaN'), NULL)", call("least", 1.0, NAN, None), 1.0, DOUBLE),
    ("sign(double('NaN'))", call("sign", NAN), NAN, DOUBLE),
    ("sign(-2)", call("sign", -2), -1.0, DOUBLE),
    # Numbers of different types compare by value.
    ("1 = 1.0D", call("=", 1, 1.0), True, BOOL),
    ("1 < 1.5", call("<", 1, Decimal("1.5")), True, BOOL),
    ("0.5 = 0.5D", call("=", Decimal("0.5"), 0.5), True, BOOL),
    # Out of a function's domain.
    ("sqrt(-1D)", call("sqrt", -1.0), NAN, DOUBLE),
    ("ln(0D)", call("ln", 0.0), None, DOUBLE),
    ("ln(-1)", call("ln", -1), None, DOUBLE),
    ("exp(1000)", call("exp", 1000), INFINITY, DOUBLE),
    ("power(4, 0.5D)", call("power", 4, 0.5), 2.0, DOUBLE),
    # Rounding.
    ("round(2.5D)", call("round", 2.5), 3.0, DOUBLE),
    ("round(-2.5D)", call("round", -2.5), -3.0, DOUBLE),
    ("round(1.005D, 2)", call("round", 1.005, 2), 1.01, DOUBLE),
    ("round(0.285D, 2)", call("round", 0.285, 2), 0.29, DOUBLE),
    ("round(1250D, -2)", call("round", 1250.0, -2), 1300.0, DOUBLE),
    ("round(1e300D, 2)", call("round", 1e300, 2), 1e300, DOUBLE),
    ("round(double('NaN'), 2)", call("round", NAN, 2), NAN, DOUBLE),
    ("round(25, -1)", call("round", 25, -1), 30, pa.int32()),
    ("round(-25, -1)", call("round", -25, -1), -30, pa.int32()),
    ("round(1.25, 1)", call("round", Decimal("1.25"), 1), Decimal("1.3"), pa.decimal128(3, 1)),
    ("round(9.99)", call("round", Decimal("9.99")), Decimal(10), pa.decimal128(2, 0)),
    ("floor(-1.5D)", call("floor", -1.5), -2, BIGINT),
    ("ceil(-1.5D)", call("ceil", -1.5), -1, BIGINT),
    ("floor(double('NaN'))", call("floor", NAN), 0, BIGINT),
    ("floor(-9223372036854775808D)", call("floor", -(2.0**63)), -(2**63), BIGINT),
    ("floor(-1.25)", call("floor", Decimal("-1.25")), Decimal(-2), pa.decimal128(2, 0)),
    ("ceil(9.5)", call("ceil", Decimal("9.5")), Decimal(10), pa.decimal128(2, 0)),
    ("floor(5)", call("floor", 5), 5, BIGINT),
    # Nulls.
    ("true AND NULL", call("and", True, None), None, BOOL),
    ("false AND NULL", call("and", False, None), False, BOOL),
    ("true OR NULL", call("or", True, None), True, BOOL),
    ("false OR NULL", call("or", False, None), None, BOOL),
    ("NOT CAST(NULL AS BOOLEAN)", call("not", None), None, BOOL),
    ("3 IN (1, NULL)", call("in", 3, 1, None), None, BOOL),
    ("1 IN (1, NULL)", call("in", 1, 1, None), True, BOOL),
    ("3 IN (1, 2)", call("in", 3, 1, 2), False, BOOL),
    ("CAST(NULL AS INT) IN (1, 2)", call("in", None, 1, 2), None, BOOL),
    ("CAST(NULL AS INT) IS NULL", call("is null", None), True, BOOL),
    (
        "CASE WHEN CAST(NULL AS BOOLEAN) THEN 1 ELSE 2 END",
        call("case", None, 1, 2),
        2,
        pa.int32(),
    ),
    ("CASE WHEN false THEN 1 END", call("case", False, 1), None, pa.int32()),
    (
        "CASE WHEN false THEN 1 WHEN true THEN 2.5D END",
        call("case", False, 1, True, 2.5),
        2.5,
        DOUBLE,
    ),
    ("coalesce(NULL, 1, 2L)", call("coalesce", None, 1, 2**40), 1, BIGINT),
    ("least(CAST(NULL AS STRING), 'b', 'a')", call("least", None, "b", "a"), "a", STRING),
    ("greatest(false, true)", call("greatest", False, True), True, BOOL),
    # Strings.
    ("concat('a', NULL)", call("concat", "a", None), None, STRING),
    ("concat('a', 1, '')", call("concat", "a", 1, ""), "a1", STRING),
    ("upper('straße')", call("upper", "straße"), "STRASSE", STRING),
    ("lower('É')", call("lower", "É"), "é", STRING),
    ("length('é😀')", call("length", "é😀"), 2, pa.int32()),
    ("'B' < 'a'", call("<", "B", "a"), True, BOOL),
    # Time.
    (
        "TIMESTAMP'2024-01-02 01:00:00Z' - TIMESTAMP'2024-01-01 00:00:00Z'",
        call("-", _on(2, 1), _on(1)),
        dt.timedelta(days=1, hours=1),
        pa.duration("us"),
    ),
    (
        "TIMESTAMP'2024-01-01 00:00:00Z' + INTERVAL 36 HOURS",
        call("+", _on(1), dt.timedelta(hours=36)),
        _on(2, 12),
        pa.timestamp("us", "UTC"),
    ),
    (
        "DATE'2024-01-01' < TIMESTAMP'2024-01-01 01:00:00Z'",
        call("<", dt.date(2024, 1, 1), _on(1, 1)),
        True,
        BOOL,
    ),
    (
        "INTERVAL 90 MINUTES > INTERVAL 1 HOUR",
        call(">", dt.timedelta(minutes=90), dt.timedelta(hours=1)),
        True,
        BOOL,
    ),
]
