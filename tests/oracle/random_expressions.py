"""Random expressions of a wanted kind, over which DuckDB, Python and Spark agree.

The generator asks a `Random`: one that Hypothesis made shrinks; one from a seed is quick.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from braid.model.expression import Call, Column, Expression, Literal

if TYPE_CHECKING:
    from random import Random

Columns = Mapping[str, Sequence[Column]]
"""Columns to build expressions of, by kind."""

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
KINDS = ("int", "float", "decimal", "string", "bool", "time", "duration")


def _choosing(kind: str) -> list[tuple[str, tuple[str, ...]]]:
    return [
        ("case", ("bool", kind)),
        ("case", ("bool", kind, "bool", kind, kind)),
        ("coalesce", (kind, kind)),
        ("greatest", (kind, kind, kind)),
        ("least", (kind, kind)),
    ]


# Of a kind with a star only columns and constants, so that numbers stay small.
RULES: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "int": [
        ("+", ("int", "int")),
        ("-", ("int", "int")),
        ("*", ("int*", "int*")),
        ("%", ("int", "int")),
        ("negate", ("int",)),
        ("abs", ("int",)),
        ("floor", ("float*",)),
        ("ceil", ("float*",)),
        ("length", ("string",)),
        *_choosing("int"),
    ],
    "float": [
        ("+", ("float", "float")),
        ("-", ("int", "float")),
        ("*", ("float*", "float*")),
        ("/", ("int", "int")),
        ("/", ("float", "decimal")),
        ("%", ("float*", "float*")),
        ("negate", ("float",)),
        ("abs", ("float",)),
        ("sign", ("decimal",)),
        ("sign", ("float",)),
        ("sqrt", ("float",)),
        ("exp", ("float*",)),
        ("ln", ("float",)),
        ("power", ("float*", "int*")),
        ("round", ("float*",)),
        *_choosing("float"),
    ],
    "decimal": [
        ("+", ("decimal", "decimal")),
        ("-", ("decimal", "int")),
        ("*", ("decimal*", "int*")),
        ("%", ("decimal", "int*")),
        ("negate", ("decimal",)),
        ("abs", ("decimal",)),
        ("floor", ("decimal",)),
        ("ceil", ("decimal",)),
        *_choosing("decimal"),
    ],
    "string": [
        ("concat", ("string", "string")),
        ("concat", ("string", "int", "string")),
        ("upper", ("string",)),
        ("lower", ("string",)),
        *_choosing("string"),
    ],
    "bool": [
        *((symbol, (kind, kind)) for symbol in COMPARISONS for kind in KINDS),
        *((symbol, ("int", "float")) for symbol in COMPARISONS),
        *((symbol, ("decimal", "int")) for symbol in COMPARISONS),
        *((symbol, ("float", "decimal")) for symbol in COMPARISONS),
        *((symbol, ("date", "date")) for symbol in COMPARISONS),
        *((symbol, ("date", "time")) for symbol in COMPARISONS),
        *(("is null", (kind,)) for kind in KINDS),
        *[("and", ("bool", "bool", "bool")), ("or", ("bool", "bool")), ("not", ("bool",))] * 6,
        *[("in", ("int", "int", "int")), ("in", ("string", "string", "string"))] * 3,
        *_choosing("bool"),
    ],
    "time": [
        ("+", ("time", "duration*")),
        ("-", ("time", "duration*")),
        *_choosing("time"),
    ],
    "duration": [
        ("-", ("time", "time")),
        ("+", ("duration", "duration")),
        ("-", ("duration", "duration")),
        ("negate", ("duration",)),
        *_choosing("duration"),
    ],
    "date": [],
}

CONSTANTS: dict[str, list[object]] = {
    "int": [0, 1, 2, 3, -1, -2, 5],
    # No NaN: DuckDB turns -x < c round into x > -c, which is not the same for it.
    "float": [0.0, 0.5, 1.0, -1.25, 2.5, 3.0],
    "decimal": [Decimal("0.00"), Decimal("1.50"), Decimal("-0.25"), Decimal("3.00")],
    "string": ["", "a", "b", "ab", "it's"],
    "bool": [True, False],
    "time": [
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2024, 1, 1, 0, 0, 0, 200_000, tzinfo=dt.UTC),
    ],
    "duration": [dt.timedelta(milliseconds=ms) for ms in (0, 20, 100, -40, 1000)],
    "date": [dt.date(2024, 1, 1), dt.date(2024, 2, 29)],
}


def random_expression(random: Random, kind: str, columns: Columns, depth: int) -> Expression:
    """An expression of a kind, not more than `depth` functions deep."""
    bare = kind.removesuffix("*")
    rules = RULES[bare]
    if kind != bare or depth == 0 or not rules or random.random() < 0.2:
        return _leaf(random, bare, columns)
    function, arguments = random.choice(rules)
    parts = (random_expression(random, each, columns, depth - 1) for each in arguments)
    return Call(function, tuple(parts))


def _leaf(random: Random, kind: str, columns: Columns) -> Expression:
    candidates = columns.get(kind)
    # Moments are with or without a zone, as the columns are; so no constants beside columns.
    if candidates and (kind == "time" or random.random() < 0.75):
        return random.choice(candidates)
    return Literal(random.choice(CONSTANTS[kind]))  # type: ignore[arg-type]
