"""The split: from a stream's own columns to the wire's form, in Catalyst.

Everything here is an expression over columns; no row passes through Python. `braid.join.wire`
explains the form.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, TimestampNTZType

from braid.join.wire import LATEST_US, TAG_BITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from braid.join.plan import JoinPlan


def tagged(plan: JoinPlan, streams: Mapping[str, DataFrame]) -> DataFrame:
    """All streams' rows in the wire's form, as one frame; `streams` are by source name."""
    kinds = _slot_kinds(plan, streams)
    frames = [
        _tagged(plan, number, streams[ref.source], kinds)
        for number, ref in enumerate(plan.query.streams)
    ]
    return reduce(lambda left, right: left.unionAll(right), frames)


def _slot_kinds(plan: JoinPlan, streams: Mapping[str, DataFrame]) -> list[DataType]:
    """The Spark type of each slot."""
    kinds: dict[int, DataType] = {}
    for ref, layout in zip(plan.query.streams, plan.wire.streams, strict=True):
        for name, slot in zip(layout.names, layout.slots, strict=True):
            kinds[slot] = streams[ref.source].schema[name].dataType
    return [kinds[slot] for slot in range(len(plan.wire.slots))]


def _tagged(
    plan: JoinPlan, number: int, frame: DataFrame, kinds: Sequence[DataType]
) -> DataFrame:
    ref, layout = plan.query.streams[number], plan.wire.streams[number]
    count = len(plan.streams)
    at = _microseconds(frame, plan.wire.event_time)
    key_is_null = reduce(or_, (F.col(_quoted(k)).isNull() for k in ref.key))
    time_is_null = at.isNull() | (at >= LATEST_US) | (at <= -LATEST_US)
    packed = (
        F.when(key_is_null, F.lit(count + number).cast("bigint"))
        .when(time_is_null, F.lit(2 * count + number).cast("bigint"))
        .otherwise(F.shiftleft(at, TAG_BITS).bitwiseOR(F.lit(number).cast("bigint")))
    )
    hashed = F.xxhash64(*(_hashable(frame, k) for k in ref.key))
    filled = dict(zip(layout.slots, layout.names, strict=True))
    slots = [
        (F.col(_quoted(filled[i])) if i in filled else F.lit(None).cast(kind)).alias(f"slot{i}")
        for i, kind in enumerate(kinds)
    ]
    return frame.select(packed.alias("at"), hashed.alias("hash"), *slots)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _microseconds(frame: DataFrame, name: str) -> Column:
    """An event time as microseconds since 1970, whatever the session's time zone."""
    q = _quoted(name)
    if not isinstance(frame.schema[name].dataType, TimestampNTZType):
        return F.unix_micros(F.col(q))
    days = f"datediff(cast({q} AS date), DATE'1970-01-01')"
    most_days = LATEST_US // 86_400_000_000 + 1  # the product of more may not fit 64 bits
    return F.expr(
        f"CASE WHEN abs({days}) <= {most_days} THEN {days} * 86400000000L"
        f" + hour({q}) * 3600000000L + minute({q}) * 60000000L"
        f" + cast(extract(SECOND FROM {q}) * 1000000 AS bigint) END"
    )


def _hashable(frame: DataFrame, name: str) -> Column:
    """A key column such that equal keys hash alike: adding zero turns -0.0 into 0.0."""
    column = F.col(_quoted(name))
    if isinstance(frame.schema[name].dataType, FloatType | DoubleType):
        return column + F.lit(0.0).cast(frame.schema[name].dataType)
    return column


def slot_expression(plan: JoinPlan, assignment: Sequence[int], slot_keys: Sequence[int]) -> str:
    """The slot key of the worker that a row goes to, as SQL.

    A row that can never join goes where its task's other such rows go, only to be counted.
    """
    by_group = ",".join(str(slot_keys[worker]) for worker in assignment)
    by_task = ",".join(map(str, slot_keys))
    tag = f"(at & {(1 << TAG_BITS) - 1})"
    group = f"cast(shiftright(shiftrightunsigned(hash, 32) * {plan.groups}L, 32) AS int)"
    return (
        f"CASE WHEN {tag} < {len(plan.streams)} THEN element_at(array({by_group}), {group} + 1)"
        f" ELSE element_at(array({by_task}), spark_partition_id() % {len(slot_keys)} + 1) END"
    )
