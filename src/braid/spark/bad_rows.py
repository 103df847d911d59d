"""Rows that Spark cannot compute an expression for, or cannot read: an error, or kept apart.

A value that cannot be cast fails a whole batch, at every start. With `--bad-rows keep` each
expression of a stream is *tried*: a row for which one fails is counted, goes on by no port, and
is kept with the reason in the folder `bad-rows` of the checkpoint, exactly once like a result.
"""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import functions
from pyspark.sql.classic.column import Column

from braid.model.checks import require_known
from braid.record.commit import ResultFile
from braid.worker.results import PartWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

FAIL, KEEP = "fail", "keep"
FOLDER = "bad-rows"
"""Where they are kept, inside the checkpoint."""

BAD = "__braid_bad"
"""The column that says why a row is bad, or null; its name is none of a stream's own."""

UNREADABLE = "__braid_unreadable"
"""The column in which Spark puts the text of a CSV or JSON row that does not fit."""

_SCHEMA = pa.schema([("stream", pa.string()), ("reason", pa.string()), ("row", pa.string())])
_TRIED, _REASON = "__braid_tried", "__braid_reason"
_SHARING = "spark.sql.subexpressionElimination.enabled"


def keeps_bad_rows(choice: str) -> bool:
    """Whether bad rows are kept apart; an unknown choice is an error."""
    require_known("way to treat bad rows", choice, (FAIL, KEEP))
    return choice == KEEP


def forbid_sharing(spark: SparkSession) -> None:
    """Keep Spark from computing what tried expressions have in common before it tries them."""
    spark.conf.set(_SHARING, "false")


@contextmanager
def unshared(spark: SparkSession) -> Iterator[None]:
    """Forbid it for the time of this block; a session that is cloned meanwhile stays so."""
    before = spark.conf.get(_SHARING, "true")
    forbid_sharing(spark)
    try:
        yield
    finally:
        spark.conf.set(_SHARING, before or "true")


def tried(
    frame: DataFrame,
    time: tuple[str, str] | None,
    condition: str | None,
    derived: Sequence[tuple[str, str]],
    shown: Sequence[str],
) -> DataFrame:
    """A source's rows with computed columns: those that meet the condition, and the bad ones.

    Expressions come with the names of their columns. A bad row has a reason in the column
    `BAD`, and itself as it was read, or as JSON with the columns to be `shown`.
    """
    whole = f"to_json(struct({', '.join(map(_quoted, shown))}))"
    reasons: list[tuple[str, str]] = []
    if UNREADABLE in frame.columns:
        reasons.append((f"{UNREADABLE} IS NOT NULL", "it does not fit the columns"))
        whole = f"coalesce({UNREADABLE}, {whole})"
    if time is not None:
        sql, name = time
        frame = frame.select("*", _attempt(sql).alias(f"{_TRIED}_time"))
        frame = frame.selectExpr("*", f"{_TRIED}_time.value AS {_quoted(name)}")
        reasons.append((f"{_TRIED}_time IS NULL", f"cannot compute its event time {sql}"))
    sqls = [condition or "true", *(sql for sql, _ in derived)]
    places = [f"{_TRIED}{number}" for number in range(len(sqls))]
    attempts = (_attempt(sql).alias(place) for sql, place in zip(sqls, places, strict=True))
    frame = frame.select("*", *attempts)
    passes = f"coalesce({places[0]}.value, false)"
    reasons.append((f"{places[0]} IS NULL", f"cannot compute {sqls[0]}"))
    reasons += [
        (f"{passes} AND {place} IS NULL", f"cannot compute {sql}")
        for sql, place in zip(sqls[1:], places[1:], strict=True)
    ]
    cases = " ".join(f"WHEN {holds} THEN {_literal(text)}" for holds, text in reasons)
    values = [
        f"{place}.value AS {_quoted(name)}"
        for (_, name), place in zip(derived, places[1:], strict=True)
    ]
    frame = frame.selectExpr("*", *values, f"CASE {cases} END AS {_REASON}")
    frame = frame.filter(f"{_REASON} IS NOT NULL OR {passes}")
    kept = f"named_struct('reason', {_REASON}, 'row', {whole})"
    return frame.selectExpr("*", f"CASE WHEN {_REASON} IS NOT NULL THEN {kept} END AS {BAD}")


def _attempt(sql: str) -> Column:
    """An expression's value as a structure, which is null if the expression fails."""
    named = functions.expr(f"named_struct('value', ({sql}))")
    context = SparkContext._active_spark_context
    assert context is not None, "a frame has its Spark"
    sql_room = context._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    utilities, attempt = sql_room.classic.ExpressionUtils, sql_room.catalyst.expressions.TryEval
    return Column(utilities.column(attempt(utilities.expression(named._jc))))


def keep(
    frames: Mapping[tuple[int, ...], DataFrame], aliases: Sequence[str], folder: Path
) -> tuple[ResultFile, ...]:
    """Write the bad rows of a batch below a folder, each partition into a part of its own."""
    write = _writer(folder, tuple(aliases))
    parts = []
    for frame in frames.values():
        bad = frame.where(f"{BAD} IS NOT NULL")
        shown = bad.selectExpr("stream", f"{BAD}.reason", f"{BAD}.row")
        for (text,) in shown.mapInArrow(write, "part string").collect():
            parts.append(ResultFile.from_json(json.loads(text)))
    return tuple(parts)


def _writer(
    folder: Path, aliases: tuple[str, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = PartWriter(folder, f"part-{uuid.uuid4().hex[:16]}.parquet", _SCHEMA)
        for batch in batches:
            streams = [aliases[number] for number in batch.column("stream").to_pylist()]
            texts = (batch.column(name).cast(pa.string()) for name in ("reason", "row"))
            columns = [pa.array(streams, pa.string()), *texts]
            writer.write(pa.Table.from_arrays(columns, schema=_SCHEMA))
        part = writer.finish()
        if part is not None:
            yield pa.RecordBatch.from_pydict({"part": [json.dumps(part.to_json())]})

    return write


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
