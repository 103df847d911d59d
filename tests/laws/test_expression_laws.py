"""Random expressions mean the same on Arrow, in DuckDB, and row by row in Python."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Context, Decimal
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from braid.evaluator import evaluate, holds, type_of
from braid.model.expression import Call, Column, Expression, Literal
from tests.oracle.answers import counted_rows, database
from tests.oracle.duckdb_sql import written
from tests.oracle.random_expressions import KINDS, random_expression
from tests.oracle.row_values import rounded, value_of

if TYPE_CHECKING:
    from collections.abc import Callable

UTC = pa.timestamp("us", "UTC")
ROWS = 12
MOST = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


# Some that shrink, and some that vary more.
randoms = st.randoms(use_true_random=False) | st.integers(0, 2**32).map(Random)


MOMENT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
CELLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [0, 1, -1, 2, 3, -5, None]),
    # Nothing infinite: DuckDB has no integer for it.
    "float": (pa.float64(), [0.0, -0.0, 0.5, -1.25, 2.5, 7.5, math.nan, None]),
    "decimal": (pa.decimal128(10, 2), [Decimal("1.5"), Decimal("-0.25"), Decimal(3), None]),
    "string": (pa.string(), ["", "a", "B", "ab", "é", "it's", None]),
    "bool": (pa.bool_(), [True, False, None]),
    "time": (UTC, [MOMENT, MOMENT + dt.timedelta(0, 1), MOMENT - dt.timedelta(3), None]),
    "duration": (pa.duration("us"), [dt.timedelta(seconds=1), dt.timedelta(0), None]),
    "date": (pa.date32(), [dt.date(2024, 1, 1), dt.date(2023, 1, 1), None]),
}
COLUMNS = {kind: [Column(0, kind), Column(1, kind)] for kind in CELLS}


@st.composite
def tables(draw: st.DrawFn) -> dict[Column, pa.Array]:
    random = draw(randoms)
    arrays = {}
    for kind, columns in COLUMNS.items():
        data_type, cells = CELLS[kind]
        for column in columns:
            arrays[column] = pa.array([random.choice(cells) for _ in range(ROWS)], data_type)
    return arrays


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Expression:
    random = draw(randoms)
    return random_expression(random, draw(st.sampled_from(KINDS)), COLUMNS, depth)


def in_duckdb(expression: Expression, arrays: dict[Column, pa.Array]) -> list[Any]:
    names = {column: f"c{number}" for number, column in enumerate(arrays)}
    table = pa.table({names[column]: array for column, array in arrays.items()})
    database().register("cells", table)
    sql = f"SELECT {written(expression, names.__getitem__)} AS value FROM cells"
    return list(database().sql(sql).to_arrow_table().column(0).to_pylist())


def by_row(expression: Expression, arrays: dict[Column, pa.Array]) -> list[Any]:
    rows = [
        {column: array[row].as_py() for column, array in arrays.items()} for row in range(ROWS)
    ]
    return [value_of(expression, row.__getitem__) for row in rows]


def plain(values: list[Any]) -> list[Any]:
    """Values that compare as results of different engines should, see `counted_rows`."""
    return [next(iter(counted_rows([(value,)]))) for value in values]


@MOST
@given(expression=expressions(), arrays=tables())
def test_arrow_agrees_with_plain_python(
    expression: Expression, arrays: dict[Column, pa.Array]
) -> None:
    result = evaluate(expression, arrays.__getitem__, ROWS)
    assert len(result) == ROWS
    assert plain(result.to_pylist()) == plain(by_row(expression, arrays))


@MOST
@given(expression=expressions(), arrays=tables())
def test_arrow_agrees_with_duckdb(
    expression: Expression, arrays: dict[Column, pa.Array]
) -> None:
    result = evaluate(expression, arrays.__getitem__, ROWS)
    assert plain(result.to_pylist()) == plain(in_duckdb(expression, arrays))


@MOST
@given(expression=expressions(), arrays=tables(), row=st.integers(0, ROWS - 1))
def test_rows_do_not_know_of_one_another(
    expression: Expression, arrays: dict[Column, pa.Array], row: int
) -> None:
    whole = evaluate(expression, arrays.__getitem__, ROWS)
    alone = evaluate(expression, lambda column: arrays[column][row : row + 1], 1)
    assert repr(alone.to_pylist()) == repr(whole[row : row + 1].to_pylist())
    assert whole.type == alone.type == type_of(expression, lambda c: arrays[c].type)


@MOST
@given(arrays=tables(), random=randoms)
def test_a_condition_holds_where_python_says_true(
    arrays: dict[Column, pa.Array], random: Random
) -> None:
    condition = random_expression(random, "bool", COLUMNS, 3)
    found = holds(condition, arrays.__getitem__, ROWS)
    assert found.tolist() == [value is True for value in by_row(condition, arrays)]


@MOST
@given(
    values=st.lists(st.floats() | st.decimals(-1000, 1000, places=3).map(float), min_size=1),
    places=st.integers(-25, 25) | st.integers(-400, 400),
)
def test_floats_round_by_the_name_they_are_printed_with(
    values: list[float], places: int
) -> None:
    expression = Call("round", (Column(0, "x"), Literal(places)))
    result = evaluate(expression, lambda _: pa.array(values, pa.float64()), len(values))
    expected = [rounded(value, places) + 0.0 for value in values]
    assert [repr(value) for value in result.to_pylist()] == [repr(value) for value in expected]


@MOST
@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), places=st.integers(-25, 0)
)
def test_integers_round_half_away_from_zero(values: list[int], places: int) -> None:
    kept = [v for v in values if -(2**63) <= rounded(v, places) < 2**63]
    expression = Call("round", (Column(0, "x"), Literal(places)))
    result = evaluate(expression, lambda _: pa.array(kept, pa.int64()), len(kept))
    assert result.to_pylist() == [rounded(value, places) for value in kept]


def decimals(most_digits: int) -> st.SearchStrategy[tuple[pa.DataType, Decimal]]:
    @st.composite
    def typed(draw: st.DrawFn) -> tuple[pa.DataType, Decimal]:
        digits = draw(st.integers(1, most_digits))
        scale = draw(st.integers(0, digits))
        number = draw(st.integers(-(10**digits) + 1, 10**digits - 1))
        return pa.decimal128(digits, scale), Decimal(number).scaleb(-scale, EXACT)

    return typed()


EXACT = Context(prec=200)


@pytest.mark.parametrize("function", ["+", "-", "*", "%"])
@MOST
@given(left=decimals(17), right=decimals(17))
def test_decimals_compute_exactly_while_digits_last(
    function: str, left: tuple[pa.DataType, Decimal], right: tuple[pa.DataType, Decimal]
) -> None:
    sides = [pa.array([value], kind) for kind, value in (left, right)]
    expression = Call(function, (Column(0, "x"), Column(1, "x")))
    result = evaluate(expression, lambda column: sides[column.stream], 1)
    apply: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
        "+": EXACT.add,
        "-": EXACT.subtract,
        "*": EXACT.multiply,
        "%": EXACT.remainder,
    }
    divides = function == "%" and not right[1]
    assert result.to_pylist() == [None if divides else apply[function](left[1], right[1])]


@MOST
@given(left=decimals(38), right=decimals(38))
def test_decimals_of_any_digits_compare_by_value(
    left: tuple[pa.DataType, Decimal], right: tuple[pa.DataType, Decimal]
) -> None:
    sides = [pa.array([value], kind) for kind, value in (left, right)]
    for function, expected in (("<", left[1] < right[1]), ("=", left[1] == right[1])):
        expression = Call(function, (Column(0, "x"), Column(1, "x")))
        result = evaluate(expression, lambda column: sides[column.stream], 1)
        assert pc.all(result).as_py() is expected


NUMBERS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.decimal128(5, 2), pa.decimal128(20, 0), pa.decimal128(30, 10)),
]
OPERATIONS = ("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "coalesce", "greatest")


def _side(row: tuple[Any, Any], column: Column) -> Any:
    return row[column.stream]


def _number(value: int | None, kind: pa.DataType) -> Any:
    if value is None or pa.types.is_integer(kind):
        return value
    return Decimal(value) if pa.types.is_decimal(kind) else float(value)


@pytest.mark.parametrize("function", OPERATIONS)
@MOST
@given(
    kinds=st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)),
    values=st.lists(st.tuples(*[st.none() | st.integers(-100, 100)] * 2), min_size=1),
)
def test_numbers_of_any_two_types_meet(
    function: str,
    kinds: tuple[pa.DataType, pa.DataType],
    values: list[tuple[int | None, int | None]],
) -> None:
    sides = [
        pa.array([_number(value, kind) for value in side], kind)
        for side, kind in zip(zip(*values, strict=True), kinds, strict=True)
    ]
    expression = Call(function, (Column(0, "x"), Column(1, "x")))
    result = evaluate(expression, lambda column: sides[column.stream], len(values))
    expected = [value_of(expression, partial(_side, row)) for row in values]
    assert [None if v is None else float(v) for v in result.to_pylist()] == [
        None if v is None else float(v) for v in expected
    ]
    assert result.type == type_of(expression, lambda column: kinds[column.stream])
