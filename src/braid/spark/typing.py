"""The types of expressions: Spark's word on those of one stream, ours on those of several."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_type

from braid.evaluator import type_of
from braid.model.errors import BraidError
from braid.spark.faults import unlogged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from braid.model.expression import Column, Expression

_FUNCTIONS = "Spark's functions are listed at https://spark.apache.org/docs/latest/api/sql/"


@dataclass(frozen=True, slots=True)
class SparkTyping:
    """Asks Spark's analyzer, which computes nothing; `columns` are by source."""

    spark: SparkSession
    columns: Mapping[str, StructType]

    def derived(self, source: str, sql: str) -> pa.DataType:
        """The type of Spark SQL over a source's own columns."""
        try:
            with unlogged():
                (field,) = self._empty(source).selectExpr(f"({sql}) AS value").schema.fields
        except PySparkException as error:
            raise self._refusal(error) from None
        try:
            return to_arrow_type(field.dataType, timezone="UTC")
        except Exception:
            kind = field.dataType.simpleString()
            raise BraidError(f"values of type {kind} cannot travel to the workers") from None

    def combined(
        self, expression: Expression, types: Callable[[Column], pa.DataType]
    ) -> pa.DataType:
        """The type of an expression over several streams."""
        return type_of(expression, types)

    def _empty(self, source: str) -> DataFrame:
        return self.spark.createDataFrame([], self.columns[source])

    def _refusal(self, error: PySparkException) -> BraidError:
        """What Spark's analyzer finds wrong, in one line, and the cure for the usual faults."""
        kind, reason = error.getCondition() or "", _reason(error)
        if kind == "UNRESOLVED_ROUTINE":
            name = (error.getMessageParameters() or {})["routineName"].strip("`")
            return BraidError(f"unknown function {name!r}", hint=self._nearest_function(name))
        if kind.startswith("DATATYPE_MISMATCH"):
            reason = reason.partition("due to data type mismatch: ")[2] or reason
            return BraidError(reason, hint="CAST what does not fit to another type")
        if kind.startswith("WRONG_NUM_ARGS"):
            return BraidError(reason.partition(" Please, refer to")[0], hint=_FUNCTIONS)
        return BraidError(reason)

    def _nearest_function(self, name: str) -> str:
        known = [row[0] for row in self.spark.sql("SHOW FUNCTIONS").collect()]
        near = get_close_matches(name.lower(), known, 1)
        return f"did you mean {near[0]!r}?" if near else _FUNCTIONS


def _reason(error: PySparkException) -> str:
    """Spark's message in one line, without its error class and its suggestions."""
    first = str(error).strip().splitlines()[0]
    return first.partition("] ")[2].partition(" SQLSTATE")[0] or first
