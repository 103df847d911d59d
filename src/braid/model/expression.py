"""Expressions over columns of several streams, as values: what a worker evaluates on matches.

What needs the columns of one stream only never gets here: the binder turns it into a derived
column or a filter of that stream, which Catalyst computes before the split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator
    from decimal import Decimal

GROUPED = -1
"""In place of a stream's number: a column of a group, see `braid.model.query.Grouping`."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream, by the stream's number: one of its own, or a derived one."""

    stream: int
    column: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; an interval is a `timedelta`, a `datetime` without a zone a TIMESTAMP_NTZ."""

    value: bool | int | float | str | Decimal | dt.datetime | dt.date | dt.timedelta | None


@dataclass(frozen=True, slots=True)
class Call:
    """A function of other expressions; `function` is one of `FUNCTIONS`."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Column | Literal | Call

FUNCTIONS = {
    # name: (fewest, most arguments); None is any number
    "+": (2, 2),
    "-": (2, 2),
    "*": (2, 2),
    "/": (2, 2),  # always a fraction, as in Spark: 1 / 2 is 0.5
    "%": (2, 2),
    "negate": (1, 1),
    "=": (2, 2),
    "<>": (2, 2),
    "<": (2, 2),
    "<=": (2, 2),
    ">": (2, 2),
    ">=": (2, 2),
    "and": (2, None),
    "or": (2, None),
    "not": (1, 1),
    "is null": (1, 1),
    "in": (2, None),  # the value, then the list's elements
    "case": (2, None),  # condition, value, condition, value, ..., and perhaps the value of ELSE
    "coalesce": (1, None),
    "greatest": (2, None),
    "least": (2, None),
    "abs": (1, 1),
    "sign": (1, 1),
    "sqrt": (1, 1),
    "exp": (1, 1),
    "ln": (1, 1),
    "power": (2, 2),
    "floor": (1, 1),
    "ceil": (1, 1),
    "round": (1, 2),
    "concat": (2, None),
    "length": (1, 1),
    "upper": (1, 1),
    "lower": (1, 1),
}
"""What can be computed over several streams' columns, with the number of arguments.

A null argument makes the result null, but for AND, OR, `is null`, `case`, `coalesce`,
`greatest` and `least`, which are as in SQL. A timestamp minus a timestamp is an interval; a
timestamp plus or minus an interval is a timestamp. Division by zero is null.
"""


def columns_of(expression: Expression) -> Iterator[Column]:
    """All columns that an expression needs, in order, with repetitions."""
    match expression:
        case Column():
            yield expression
        case Call(arguments=arguments):
            for argument in arguments:
                yield from columns_of(argument)
