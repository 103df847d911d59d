"""Expressions: what a worker computes on Arrow is what Spark computes.

Spark is asked at run time and at planning time, where it folds constants by other code.
Integers are compared by value, for ours have 64 bits, and floats in their first digits, for
functions such as `exp` may differ in their last.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from braid.evaluator import evaluate
from braid.model.expression import Call, Column, Expression, Literal
from tests.oracle.random_expressions import KINDS, random_expression
from tests.oracle.spark_answers import ANSWERS
from tests.oracle.values import EPOCH, TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FOLDING = "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"
EXPRESSIONS = 300
ROWS = 40
NAMES = [f"c{number}" for number in range(len(ANSWERS))]

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [0, 1, 2, 3, -7, 10, None]),
    "float": (pa.float64(), [0.0, -0.0, 0.5, -2.5, 1e10, math.nan, None]),
    "decimal": (
        pa.decimal128(10, 2),
        [Decimal("1.50"), Decimal("-0.25"), Decimal("0.00"), None],
    ),
    "string": (pa.string(), ["", "a", "ab", "B", "straße", None]),
    "bool": (pa.bool_(), [True, False, None]),
    "time": (TIME, [EPOCH, EPOCH + dt.timedelta(milliseconds=20), None]),
    "duration": (pa.duration("us"), [dt.timedelta(0), dt.timedelta(seconds=-3), None]),
    "date": (pa.date32(), [dt.date(2024, 1, 1), dt.date(1969, 12, 31), None]),
}
SIGNS = {"+", "-", "*", "=", "<>", "<", "<=", ">", ">=", "and", "or"}
SPELLING = {
    "/": "try_divide({0}, {1})",
    "%": "try_mod({0}, {1})",
    "negate": "(- {0})",
    "not": "(NOT {0})",
    "is null": "({0} IS NULL)",
}


@pytest.fixture(params=["folded", "at run time"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "UTC")
    if request.param == "at run time":
        own.conf.set("spark.sql.optimizer.excludedRules", FOLDING)
    return own


def test_the_noted_answers_are_sparks_and_ours(session: SparkSession) -> None:
    noted = pa.table([pa.array([value], kind) for _, _, value, kind in ANSWERS], NAMES)
    compare([text for text, *_ in ANSWERS], noted, session.range(1))
    ours = [evaluate(expression, no_columns, 1) for _, expression, *_ in ANSWERS]
    compare([text for text, *_ in ANSWERS], pa.table(ours, NAMES), session.range(1))


def test_random_expressions_are_what_spark_computes(session: SparkSession) -> None:
    random = Random(1)
    rows = pa.table(
        {name: pa.array(random.choices(v, k=ROWS), kind) for name, (kind, v) in COLUMNS.items()}
    )
    columns = {name: [Column(0, name)] for name in COLUMNS}
    expressions = [
        random_expression(random, random.choice(KINDS), columns, 3) for _ in range(EXPRESSIONS)
    ]
    ours = [evaluate(e, lambda c: rows[c.column].combine_chunks(), ROWS) for e in expressions]
    frame = session.createDataFrame(rows).coalesce(1)
    compare(
        [written(e) for e in expressions],
        pa.table(ours, [f"c{n}" for n in range(EXPRESSIONS)]),
        frame,
    )


def compare(texts: list[str], ours: pa.Table, frame: DataFrame) -> None:
    """Spark's columns, by their texts, have our types and values."""
    asked = [f"({text}) AS c{number}" for number, text in enumerate(texts)]
    sparks = frame.selectExpr(*asked).toArrow()
    for text, our, spark in zip(texts, ours.columns, sparks.columns, strict=True):
        assert widest(our.type) == widest(spark.type), f"{text} is {spark.type} in Spark"
        for row, pair in enumerate(zip(our.to_pylist(), spark.to_pylist(), strict=True)):
            assert same(*pair), f"{text} is {pair[1]} in Spark, not {pair[0]}, in row {row}"


def widest(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(kind) else kind


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or math.isclose(left, right, rel_tol=1e-14)
    return bool(left == right)


def no_columns(column: Column) -> pa.Array:
    raise AssertionError(column)


def written(expression: Expression) -> str:
    """An expression in Spark's SQL."""
    match expression:
        case Column():
            return expression.column
        case Literal(value):
            return constant(value)
        case Call(function, arguments):
            return call(function, [written(argument) for argument in arguments])


def call(function: str, arguments: list[str]) -> str:
    if function in SIGNS:
        return f"({f' {function} '.join(arguments)})"
    if function in SPELLING:
        return SPELLING[function].format(*arguments)
    if function == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    if function == "case":
        pairs = zip(arguments[::2], arguments[1::2], strict=False)
        branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        otherwise = f" ELSE {arguments[-1]}" if len(arguments) % 2 else ""
        return f"CASE {branches}{otherwise} END"
    return f"{function}({', '.join(arguments)})"


def constant(value: object) -> str:
    match value:
        case bool() | int() | Decimal():
            return str(value)
        case float():
            return f"{value}D"
        case dt.timedelta():
            return f"INTERVAL '{value.total_seconds()}' SECOND"
        case dt.datetime():
            return f"TIMESTAMP'{value.isoformat(' ')}'"
        case dt.date():
            return f"DATE'{value.isoformat()}'"
        case str():
            escaped = value.replace("'", "\\'")
            return f"'{escaped}'"
    raise TypeError(f"no constant: {value!r}")
