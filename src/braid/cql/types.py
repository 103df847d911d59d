"""The types of expressions, as far as they are known, and the errors of those that do not fit.

A stream's own columns have their types from the schemas. Those of expressions are known to
Spark and Arrow alone, which this room does not know: whoever has them passes a `Typing`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from braid.model.errors import BraidError
from braid.model.expression import Column, Expression
from braid.model.query import sum_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.cql.place import Place
    from braid.cql.scope import Scope
    from braid.cql.snippet import Snippet


class Typing(Protocol):
    """Tells the types of expressions; the same answer to the same question, always.

    Both raise a `BraidError` for an expression that cannot be computed. Its message is shown to
    the user, at the place of the expression in the query.
    """

    def derived(self, source: str, sql: str) -> pa.DataType:
        """The type of Spark SQL over the own columns of a source, named in backticks."""

    def combined(
        self, expression: Expression, types: Callable[[Column], pa.DataType]
    ) -> pa.DataType:
        """The type of an expression over several streams, given those of its columns."""


@dataclass(frozen=True, slots=True)
class Types:
    """Asks for types and judges them; without a `Typing`, most are None, and pass."""

    scope: Scope
    typing: Typing | None
    derived: dict[tuple[int, str], pa.DataType] = field(default_factory=dict)

    def of_snippet(self, snippet: Snippet, place: Place) -> pa.DataType | None:
        """The type of an expression over one stream; an error if Spark refuses it."""
        if snippet.column is not None:
            return self.scope.type_of(snippet.stream, snippet.column)
        key = (snippet.stream, snippet.sql)
        if self.typing is not None and key not in self.derived:
            source = self.scope.sources[snippet.stream]
            try:
                self.derived[key] = self.typing.derived(source, snippet.sql)
            except BraidError as error:
                raise place.error(error.message, hint=error.hint) from error
        return self.derived.get(key)

    def of(
        self,
        expression: Expression,
        column_type: Callable[[Column], pa.DataType | None],
        place: Place,
    ) -> pa.DataType | None:
        """The type of an expression over columns of the given types."""
        if isinstance(expression, Column):
            return column_type(expression)
        if self.typing is None:
            return None
        try:
            return self.typing.combined(expression, column_type)
        except BraidError as error:
            raise place.error(error.message, hint=error.hint) from error


def check_boolean(kind: pa.DataType | None, place: Place) -> None:
    """Refuse a condition that is known to be none."""
    if kind is not None and not (pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise place.error(
            f"a condition is true or false, but this is {kind}",
            hint="compare it with something, such as … = 1 or … IS NOT NULL",
        )


def check_flat(kind: pa.DataType | None, where: str, place: Place) -> None:
    """Refuse lists, maps and structs where values must be compared."""
    if kind is not None and pa.types.is_nested(kind):
        raise place.error(
            f"{where} cannot be of type {kind}",
            hint="use the fields or elements that count, each for itself",
        )


def summed(kind: pa.DataType | None, place: Place) -> pa.DataType | None:
    """The type of a sum, as far as it is known what is summed."""
    if kind is None or pa.types.is_null(kind):
        return kind
    found = sum_type(kind)
    if found is None:
        raise place.error(
            f"only numbers have a sum, and this is {kind}",
            hint="CAST it to a number, or count it",
        )
    return found
