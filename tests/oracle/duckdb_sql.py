"""Expressions as DuckDB's SQL, spelled out wherever DuckDB means something else than Spark.

Not spelled out, because the text does not know types: the difference of two dates, which is an
integer in DuckDB, and the absolute value of a duration, which it does not have.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import sqlglot

from braid.model.expression import Call, Column, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

SPELLING = {
    "negate": "(-{0})",
    "not": "(NOT {0})",
    "is null": "({0} IS NULL)",
    "/": "(CAST({0} AS DOUBLE) / NULLIF(CAST({1} AS DOUBLE), 0))",
    "%": "({0} % NULLIF({1}, 0))",
    "sign": "CASE WHEN isnan(CAST({0} AS DOUBLE)) THEN 'nan'::DOUBLE ELSE sign({0}) END",
    "sqrt": "sqrt(CAST({0} AS DOUBLE))",
    "exp": "exp(CAST({0} AS DOUBLE))",
    "ln": "CASE WHEN {0} > 0 THEN ln(CAST({0} AS DOUBLE)) END",
    "power": "pow(CAST({0} AS DOUBLE), CAST({1} AS DOUBLE))",
    "floor": "CASE WHEN isnan(CAST({0} AS DOUBLE)) THEN 0 ELSE CAST(floor({0}) AS BIGINT) END",
    "ceil": "CASE WHEN isnan(CAST({0} AS DOUBLE)) THEN 0 ELSE CAST(ceil({0}) AS BIGINT) END",
}
BETWEEN = {"+", "-", "*", "=", "<>", "<", "<=", ">", ">=", "and", "or"}


def quoted(name: str) -> str:
    """A name that DuckDB takes as it is."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def from_spark(text: str) -> str:
    """Spark's SQL as DuckDB's."""
    return sqlglot.parse_one(text, read="spark").sql("duckdb")


def written(expression: Expression, name: Callable[[Column], str]) -> str:
    """An expression in DuckDB's SQL; `name` says how to write a column."""
    match expression:
        case Column():
            return name(expression)
        case Literal(value):
            return constant(value)
        case Call(function, arguments):
            return _call(function, [written(argument, name) for argument in arguments])


def _call(function: str, arguments: list[str]) -> str:
    if function in BETWEEN:
        return f"({f' {function} '.join(arguments)})"
    if function in SPELLING:
        return SPELLING[function].format(*arguments)
    if function == "concat":
        return f"({' || '.join(f'CAST({argument} AS VARCHAR)' for argument in arguments)})"
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
        case None:
            return "NULL"
        case bool():
            return str(value)
        case int():
            return f"CAST({value} AS BIGINT)"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case Decimal():
            _, digits, places = value.as_tuple()
            assert isinstance(places, int)
            precision = max(len(digits), -places)
            return f"CAST('{value}' AS DECIMAL({precision}, {-places}))"
        case dt.timedelta():
            return f"to_microseconds({value // dt.timedelta(microseconds=1)})"
        case dt.datetime():
            kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
            return f"{kind} '{value.isoformat(' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case str():
            escaped = value.replace("'", "''")
            return f"'{escaped}'"
    raise TypeError(f"no constant: {value!r}")
