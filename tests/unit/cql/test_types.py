from collections.abc import Callable

import pyarrow as pa
import pytest

from braid.cql import bind
from braid.model.errors import BraidError, QueryError
from braid.model.expression import GROUPED, Call, Column, Expression, Literal
from braid.model.query import Query
from tests.unit.cql.pointing import AB, SCHEMAS


class Guess:
    """A few types by the look of expressions, and a record of what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.grouped: dict[str, pa.DataType] = {}

    def derived(self, source: str, sql: str) -> pa.DataType:
        self.asked.append(f"{source}: {sql}")
        if "broken" in sql:
            raise BraidError("no function broken", hint="did you mean unbroken?")
        if any(sign in sql for sign in (" = ", " > ", " < ", "NULL", "TRUE")):
            return pa.bool_()
        return pa.string() if "upper" in sql or "||" in sql else pa.int64()

    def combined(
        self, expression: Expression, types: Callable[[Column], pa.DataType]
    ) -> pa.DataType:
        match expression:
            case Column():
                kind = types(expression)
                if expression.stream == GROUPED:
                    self.grouped[expression.column] = kind
                return kind
            case Literal(value):
                return pa.scalar(value).type
            case Call(function, arguments):
                kinds = [self.combined(each, types) for each in arguments]
                if function in (">", "<", "=", "and", "or", "not", "is null"):
                    return pa.bool_()
                if function == "+" and pa.string() in kinds:
                    raise BraidError("strings have no sum")
                return kinds[0]


def typed(text: str, typing: Guess | None = None) -> Query:
    return bind(text, SCHEMAS, event_time="ts", typing=typing or Guess())


def test_spark_is_asked_for_the_type_of_each_text_once() -> None:
    typing = Guess()
    query = typed(
        f"SELECT upper(a.name) AS x, upper(a.name) AS y, a.k + 1 {AB} AND a.v > 1 AND b.j = 1",
        typing,
    )
    assert typing.asked == ["a: `v` > 1", "b: `j` = 1", "a: upper(`name`)", "a: `k` + 1"]
    assert query == bind(query.text, SCHEMAS, event_time="ts")


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        (f"SELECT «broken(a.k)» {AB}", "no function broken"),
        (f"SELECT a.v * «broken(b.k)» {AB}", "no function broken"),
        (f"SELECT a.k {AB} AND «broken(b.k)» > 1", None),
        (f"SELECT a.k {AB} AND «a.k + 1»", "a condition is true or false, but this is int64"),
        (f"SELECT a.k {AB} AND «a.k + b.k»", "a condition is true or false, but this is int64"),
        (
            f"SELECT a.k {AB} AND «upper(a.name) = b.k + 1»",
            "upper(a.name) is string, but b.k + 1 is",
        ),
        (f"SELECT «a.name + b.v» {AB}", "strings have no sum"),
        (f"SELECT count(*) {AB} HAVING «count(*) + 1»", "this is int64"),
        (f"SELECT «sum(upper(a.name))» {AB}", "only numbers have a sum, and this is string"),
        (f"SELECT «a.name + 1» {AB} GROUP BY a.name", "strings have no sum"),
    ],
)
def test_types_that_do_not_fit_are_shown_at_their_place(
    marked: str, message: str | None
) -> None:
    before, inside, after = marked.replace("»", "«").split("«")
    with pytest.raises(QueryError) as caught:
        typed(before + inside + after)
    if message is None:
        assert caught.value.hint == "did you mean unbroken?"
        return
    assert message in caught.value.message
    assert caught.value.text[caught.value.lower : caught.value.upper] == inside


def test_without_a_typing_derived_types_pass() -> None:
    assert bind(
        f"SELECT a.k {AB} AND a.k + 1 AND upper(a.name) = b.k + 1", SCHEMAS, event_time="ts"
    )


def test_the_columns_of_groups_have_types() -> None:
    typing = Guess()
    decimals = {
        name: schema.append(pa.field("d", pa.decimal128(10, 2)))
        for name, schema in SCHEMAS.items()
    }
    bind(
        "SELECT a.name = a.k AS p, count(*) > sum(a.j) AS q, sum(a.v) > sum(a.d) AS r, "
        f"min(a.name) = max(a.j) AS s, window_end > window_end AS t {AB} GROUP BY a.name, a.k",
        decimals,
        event_time="ts",
        typing=typing,
    )
    assert typing.grouped == {
        "key 0": pa.string(),
        "key 1": pa.int64(),
        "aggregate 0": pa.int64(),
        "aggregate 1": pa.int64(),
        "aggregate 2": pa.float64(),
        "aggregate 3": pa.decimal128(38, 2),
        "aggregate 4": pa.string(),
        "aggregate 5": pa.int32(),
        "window_end": pa.timestamp("us"),
    }
