"""Expressions on Arrow: answers, types, nulls, and errors in one sentence."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from braid.evaluator import evaluate, holds, type_of
from braid.evaluator.walk import _FUNCTIONS
from braid.model.errors import BraidError
from braid.model.expression import FUNCTIONS, Call, Column, Expression, Literal
from tests.oracle.spark_answers import ANSWERS, call

if TYPE_CHECKING:
    from collections.abc import Callable

UTC = pa.timestamp("us", "UTC")


def column(name: str) -> Column:
    return Column(0, name)


def reading(**arrays: pa.Array) -> Callable[[Column], pa.Array]:
    return lambda each: arrays[each.column]


def no_columns(each: Column) -> pa.Array:
    raise AssertionError(each)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


def with_columns(expression: Expression, arrays: dict[str, pa.Array]) -> Expression:
    """The same expression, with every constant argument in a column of two equal rows.

    But for what must stay constant: NULL, which has no type of its own, and places to round to.
    """
    assert isinstance(expression, Call)
    arguments: list[Expression] = []
    for place, argument in enumerate(expression.arguments):
        assert isinstance(argument, Literal)
        if argument.value is None or (expression.function == "round" and place):
            arguments.append(argument)
            continue
        arrays[f"c{place}"] = pa.repeat(evaluate(argument, no_columns, 1)[0], 2)
        arguments.append(column(f"c{place}"))
    return Call(expression.function, tuple(arguments))


def test_every_function_of_the_model_can_be_evaluated() -> None:
    assert set(_FUNCTIONS) == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("expression", "value", "kind"),
    [answer[1:] for answer in ANSWERS],
    ids=[answer[0] for answer in ANSWERS],
)
def test_constants_are_computed_as_spark_does(
    expression: Expression, value: Any, kind: pa.DataType
) -> None:
    result = evaluate(expression, no_columns, 3)
    assert result.type == kind
    assert all(same(each, value) for each in result.to_pylist())
    assert len(result) == 3


@pytest.mark.parametrize(
    ("expression", "value"),
    [answer[1:3] for answer in ANSWERS],
    ids=[answer[0] for answer in ANSWERS],
)
def test_columns_are_computed_as_constants_are(expression: Expression, value: Any) -> None:
    arrays: dict[str, pa.Array] = {}
    varied = with_columns(expression, arrays)
    result = evaluate(varied, reading(**arrays), 2)
    assert all(same(each, value) for each in result.to_pylist())
    assert len(result) == 2
    assert type_of(varied, lambda each: arrays[each.column].type) == result.type


def test_a_column_alone_comes_back_as_it_is() -> None:
    strange = pa.array([[1], None])
    assert evaluate(column("x"), reading(x=strange), 2) is strange
    kind = pa.dictionary(pa.int8(), pa.large_string())
    assert type_of(column("x"), lambda _: kind) == kind


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (pa.uint8(), pa.int16()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("us", "Europe/Berlin")),
        (pa.duration("s"), pa.duration("us")),
        (pa.decimal64(5, 2), pa.decimal128(5, 2)),
    ],
    ids=str,
)
def test_functions_see_sparks_types(given: pa.DataType, seen: pa.DataType) -> None:
    assert type_of(call("coalesce", column("x")), lambda _: given) == seen


def typed(function: str, *kinds: pa.DataType) -> pa.DataType:
    """The type of a function of columns of these types."""
    arguments = tuple(Column(number, "x") for number in range(len(kinds)))
    return type_of(Call(function, arguments), lambda each: kinds[each.stream])


def refusal(function: str, *kinds: pa.DataType) -> str:
    """What is wrong with a function of columns of these types; nothing, perhaps."""
    try:
        typed(function, *kinds)
    except BraidError as error:
        return str(error)
    return ""


def test_integers_compute_in_64_bits() -> None:
    assert typed("+", pa.int8(), pa.int16()) == pa.int64()
    most = pa.array([2**31 - 1], pa.int32())
    product = evaluate(call("*", column("x"), column("x")), reading(x=most), 1)
    assert product.to_pylist() == [(2**31 - 1) ** 2]


def test_floats_of_32_bits_stay_among_themselves() -> None:
    assert typed("+", pa.float32(), pa.float32()) == pa.float32()
    assert typed("+", pa.float32(), pa.int8()) == pa.float64()
    assert typed("+", pa.float32(), pa.decimal128(5, 2)) == pa.float64()


def test_a_choice_takes_the_widest_type() -> None:
    assert typed("coalesce", pa.int8(), pa.int32()) == pa.int32()
    assert typed("greatest", pa.int64(), pa.decimal128(10, 2)) == pa.decimal128(22, 2)
    assert typed("coalesce", pa.decimal128(38, 0), pa.decimal128(38, 38)) == pa.decimal128(
        38, 38
    )
    assert typed("least", pa.date32(), UTC) == UTC
    assert typed("least", pa.timestamp("us"), UTC) == UTC
    assert typed("case", pa.bool_(), pa.list_(pa.int8())) == pa.list_(pa.int8())


def test_moments_meet_whatever_their_zone_and_unit() -> None:
    kinds = [pa.timestamp("s"), pa.timestamp("ns", "Asia/Tokyo"), UTC, pa.date32()]
    for left in kinds:
        for right in kinds:
            assert typed("-", left, right) == pa.duration("us")
            assert typed("<", left, right) == pa.bool_()
    arrays = reading(a=pa.array([1], pa.timestamp("s", "Asia/Tokyo")), b=pa.array([1], UTC))
    apart = evaluate(call("-", column("a"), column("b")), arrays, 1)
    assert apart.to_pylist() == [dt.timedelta(microseconds=999_999)]


@pytest.mark.parametrize(
    ("function", "kinds", "message"),
    [
        ("=", (pa.string(), pa.int64()), "cannot compare string with int64"),
        ("<", (pa.bool_(), pa.int8()), "cannot compare bool with int8"),
        ("<", (UTC, pa.duration("us")), "cannot compare timestamp"),
        ("=", (pa.list_(pa.int8()), pa.list_(pa.int8())), "cannot compare list<item: int8>"),
        ("in", (pa.int8(), pa.int8(), pa.string()), "cannot compare int8 with string"),
        ("+", (pa.string(), pa.int64()), "cannot add string and int64"),
        ("+", (UTC, UTC), "cannot add timestamp"),
        ("-", (pa.duration("us"), UTC), "cannot subtract timestamp"),
        ("-", (pa.string(), pa.string()), "cannot subtract string from string"),
        ("*", (pa.duration("us"), pa.int8()), "cannot multiply duration"),
        ("/", (pa.bool_(), pa.int8()), "cannot divide bool by int8"),
        ("%", (pa.string(), pa.int8()), "cannot take string modulo int8"),
        ("negate", (pa.string(),), "cannot negate string"),
        ("abs", (UTC,), "cannot take abs of timestamp"),
        ("sqrt", (pa.string(),), "cannot compute sqrt of string"),
        ("power", (pa.int8(), pa.bool_()), "cannot compute power of bool"),
        ("floor", (pa.string(),), "cannot compute floor of string"),
        ("round", (UTC,), "cannot round timestamp"),
        ("round", (pa.float64(), pa.int8()), "places to round to must be a constant"),
        ("and", (pa.bool_(), pa.int8()), "an argument of AND must be boolean, not int8"),
        ("or", (pa.string(), pa.bool_()), "an argument of OR must be boolean, not string"),
        ("not", (pa.int8(),), "the argument of NOT must be boolean, not int8"),
        ("case", (pa.int8(), pa.int8()), "a condition of CASE must be boolean, not int8"),
        ("case", (pa.bool_(), pa.int8(), pa.string()), "CASE cannot choose between int8 and"),
        (
            "coalesce",
            (pa.int8(), pa.string()),
            "COALESCE cannot choose between int8 and string",
        ),
        ("greatest", (UTC, pa.string()), "GREATEST cannot choose between timestamp"),
        ("concat", (pa.string(), pa.float64()), "cannot concat double"),
        ("length", (pa.int8(),), "cannot compute length of int8"),
        ("upper", (pa.binary(),), "cannot compute upper of binary"),
    ],
)
def test_types_that_do_not_fit_are_named(
    function: str, kinds: tuple[pa.DataType, ...], message: str
) -> None:
    with pytest.raises(BraidError, match=message) as caught:
        typed(function, *kinds)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_no_types_at_all_bring_up_an_error_of_arrow(function: str) -> None:
    kinds = [
        *(pa.null(), pa.bool_(), pa.int8(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.decimal128(38, 38), pa.decimal128(38, 0), pa.string(), pa.binary(), pa.date32()),
        *(UTC, pa.timestamp("s"), pa.duration("us"), pa.time64("us"), pa.list_(pa.int8())),
        *(pa.struct([("x", pa.int8())]), pa.decimal256(76, 2), pa.uint64()),
    ]
    fewest, most = FUNCTIONS[function]
    for count in {fewest, most or fewest + 1}:
        for left in kinds:
            for right in kinds:
                assert "overflow" not in refusal(function, *[left, right, left][:count])


@pytest.mark.parametrize(
    ("expression", "operation"),
    [
        (call("+", 2**63 - 1, 1), r"'\+' for int64, int32"),
        (call("*", 2**62, 2**62), r"'\*' for int64, int64"),
        (call("negate", -(2**63)), "'negate' for int64"),
        (call("abs", -(2**63)), "'abs' for int64"),
        (call("round", 2**63 - 1, -1), "'round' for int64, int32"),
        (call("ceil", 1e300), "'ceil' for double"),
        (call("floor", float("-inf")), "'floor' for double"),
        (call("+", Decimal("9" * 38), 1), r"'\+' for decimal128\(38, 0\), int32"),
        (call("*", Decimal("9" * 38), Decimal("9" * 38)), r"'\*'"),
        (call("coalesce", Decimal("9" * 38), Decimal("0.5")), "'coalesce'"),
        (
            call("+", dt.datetime.max, dt.timedelta(microseconds=2**63 - 1)),
            r"'\+' for timestamp\[us\]",
        ),
    ],
)
def test_an_overflow_is_an_error_that_names_the_operation(
    expression: Expression, operation: str
) -> None:
    with pytest.raises(BraidError, match=f"overflow: a result of {operation}"):
        evaluate(expression, no_columns, 1)


def test_an_overflow_that_no_cast_cures_has_another_cure() -> None:
    late = call("+", dt.datetime.max, dt.timedelta(microseconds=2**63 - 1))
    for expression in (call("ceil", 1e300), late):
        with pytest.raises(BraidError) as caught:
            evaluate(expression, no_columns, 1)
        assert caught.value.hint == "leave such combinations out, by a condition in WHERE"


def test_constants_too_large_for_any_type_are_errors() -> None:
    assert type_of(Literal(2**63), lambda _: pa.null()) == pa.decimal128(19, 0)
    with pytest.raises(BraidError, match="has more than 38 digits"):
        evaluate(Literal(10**40), no_columns, 1)
    with pytest.raises(BraidError, match="is out of range"):
        evaluate(Literal(dt.timedelta.max), no_columns, 1)


def test_decimals_of_all_digits_compare_exactly() -> None:
    left = pa.array([Decimal("1"), Decimal("0")], pa.decimal128(38, 0))
    right = pa.array([Decimal("0." + "9" * 38), Decimal("1e-38")], pa.decimal128(38, 38))
    found = evaluate(call("<", column("a"), column("b")), reading(a=left, b=right), 2)
    assert found.to_pylist() == [False, True]


def test_a_condition_holds_where_it_is_true_alone() -> None:
    truth = pa.array([True, False, None])
    assert holds(column("x"), reading(x=truth), 3).tolist() == [True, False, False]
    assert holds(Literal(True), no_columns, 2).tolist() == [True, True]
    assert holds(Literal(None), no_columns, 2).tolist() == [False, False]
    assert holds(column("x"), reading(x=truth[:0]), 0).dtype == np.bool_
    with pytest.raises(BraidError, match="a condition must be boolean, not int32"):
        holds(Literal(1), no_columns, 1)


def test_slices_and_their_offsets_are_respected() -> None:
    numbers = pa.array([9.5, None, 2.5, -1.5, math.nan])[1:]
    words = pa.array(["x", "ß", None, "a", "ß"])[1:]
    arrays = reading(n=numbers, w=words)
    assert evaluate(call("round", column("n")), arrays, 4).to_pylist()[:3] == [None, 3.0, -2.0]
    assert evaluate(call("floor", column("n")), arrays, 4).to_pylist() == [None, 2, -2, 0]
    assert evaluate(call("upper", column("w")), arrays, 4).to_pylist() == [
        "SS",
        None,
        "A",
        "SS",
    ]


def test_durations_have_a_sign_and_an_order() -> None:
    apart = pa.array([dt.timedelta(seconds=-3), None], pa.duration("us"))
    arrays = reading(x=apart)
    three = dt.timedelta(seconds=3)
    assert evaluate(call("abs", column("x")), arrays, 2).to_pylist() == [three, None]
    assert evaluate(call("negate", column("x")), arrays, 2).to_pylist() == [three, None]
    most = evaluate(call("greatest", column("x"), three), arrays, 2)
    assert most.to_pylist() == [three, three]


@pytest.mark.parametrize(
    ("function", "left", "right"),
    [
        ("-", UTC, UTC),
        ("-", UTC, pa.duration("us")),
        ("+", UTC, pa.duration("us")),
        ("-", pa.duration("us"), pa.duration("us")),
        ("+", pa.int64(), pa.int64()),
        ("*", pa.int64(), pa.int64()),
        ("%", pa.int64(), pa.int64()),
    ],
)
def test_what_lies_under_a_null_does_not_overflow(
    function: str, left: pa.DataType, right: pa.DataType
) -> None:
    def half_null(kind: pa.DataType, under: int) -> pa.Array:
        buffers = [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([5, under], np.int64))]
        return pa.Array.from_buffers(kind, 2, buffers)

    arrays = reading(a=half_null(left, -(2**63)), b=half_null(right, 2**63 - 1))
    result = evaluate(call(function, column("a"), column("b")), arrays, 2)
    assert result.is_null().to_pylist() == [False, True]
