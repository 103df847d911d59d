"""The split: from a stream's own columns to the wire's form, in Catalyst.

Everything here is an expression over columns; no row passes through Python. `braid.join.wire`
explains the form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import DataType, DoubleType, FloatType, TimestampNTZType

from braid.join.outgoing import hashed_slots
from braid.join.wire import LATEST_US, NULL_KEY, NULL_TIME, TAG_BITS, TAGS
from braid.model.expression import Column
from braid.state.runs import marked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from braid.join.plan import JoinPlan
    from braid.plan.rounds import Port


@dataclass(frozen=True, slots=True)
class _Part:
    """One stream's way into one round, as text for Spark: asking it in Python takes longer."""

    source: str
    filter: str | None
    derived: tuple[str, ...]
    columns: tuple[str, ...]
    only: str | None  # rows that cannot join are counted once, at the stream's first port

    def of(self, frame: DataFrame) -> DataFrame:
        """A source's rows in the wire's form."""
        if self.filter is not None:
            frame = frame.filter(self.filter)
        if self.derived:
            frame = frame.selectExpr("*", *self.derived)
        frame = frame.selectExpr(*self.columns)
        return frame if self.only is None else frame.filter(self.only)


@dataclass(frozen=True, slots=True)
class Split:
    """How all streams' rows get the wire's form; the same for every batch."""

    parts: tuple[_Part, ...]

    @classmethod
    def of(cls, plan: JoinPlan, schemas: Mapping[str, StructType]) -> Split:
        """The split of a plan, over sources with these columns."""
        entered, parts, seen = rounds_entered(plan), [], set()
        for number in entered:
            for tag, port in enumerate(plan.rounds.rounds[number].ports):
                if port.stream is not None:
                    first = port.stream not in seen
                    seen.add(port.stream)
                    several = number if len(entered) > 1 else None
                    parts.append(_part(plan, port, tag, schemas, several, first))
        return cls(tuple(parts))

    def tagged(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        """All streams' rows in the wire's form, as one frame; `frames` are by source.

        Where rows enter in several rounds, a column `round` says in which.
        """
        parts = (part.of(frames[part.source]) for part in self.parts)
        return reduce(lambda left, right: left.unionAll(right), parts)


def _part(
    plan: JoinPlan,
    port: Port,
    tag: int,
    schemas: Mapping[str, StructType],
    number: int | None,
    first: bool,
) -> _Part:
    assert port.stream is not None, "only a stream's own rows are split"
    ref, layout = plan.query.streams[port.stream], plan.wire.layout(port)
    kinds = {field.name: field.dataType for field in schemas[ref.source]}
    for column in ref.derived:
        kinds[column.name] = from_arrow_type(plan.wire.types[Column(port.stream, column.name)])
    keys = [name for key in plan.query.keys if (name := key.of(port.stream)) is not None]
    at = _microseconds(plan.wire.event_time, kinds)
    packed = (
        f"CASE WHEN {' OR '.join(f'{_quoted(name)} IS NULL' for name in keys)} THEN {NULL_KEY}L"
        f" WHEN {at} IS NULL OR {at} >= {LATEST_US}L OR {at} <= -{LATEST_US}L THEN {NULL_TIME}L"
        f" ELSE shiftleft({at}, {TAG_BITS}) | {tag}L END AS at"
    )
    joined_on = [plan.query.keys[key].of(port.stream) for key in _keys(plan, port)]
    hashed = [_hashable(name, kinds) for name in joined_on if name is not None]
    filled = {slot: c.column for slot, c in zip(layout.slots, layout.columns, strict=True)}
    slots = [
        # A null gets its type from the streams that have a value here.
        f"{_quoted(filled[slot]) if slot in filled else 'NULL'} AS slot{slot}"
        for slot in range(len(plan.wire.slots))
    ]
    return _Part(
        source=ref.source,
        filter=ref.filter,
        derived=tuple(f"({column.sql}) AS {_quoted(column.name)}" for column in ref.derived),
        columns=(
            packed,
            f"xxhash64({', '.join(hashed or ['0'])}) AS hash",
            *slots,
            *([] if number is None else [f"{number} AS round"]),
        ),
        only=_only(plan, port, tag, first=first),
    )


def _only(plan: JoinPlan, port: Port, tag: int, *, first: bool) -> str | None:
    """Which rows go by a port: those that can join, of groups that go through its tree."""
    route = None
    if plan.routes:
        marks = marked(plan.routes[port.tree], plan.groups).astype(int).tolist()
        route = f"{_looked_up(_group(plan), marks)} = 1"
    if first:
        return route and f"at & {TAGS} IN ({NULL_KEY}, {NULL_TIME}) OR {route}"
    mine = f"at & {TAGS} = {tag}"
    return mine if route is None else f"{mine} AND {route}"


def _group(plan: JoinPlan) -> str:
    return f"shiftright(shiftrightunsigned(hash, 32) * {plan.groups}L, 32)"


def _keys(plan: JoinPlan, port: Port) -> tuple[int, ...]:
    return plan.rounds.spaces[port.space].keys


def rounds_entered(plan: JoinPlan) -> list[int]:
    """The rounds into which rows come straight from the sources."""
    return [
        number
        for number, a_round in enumerate(plan.rounds.rounds)
        if any(port.stream is not None for port in a_round.ports)
    ]


def entering(plan: JoinPlan, rows: DataFrame, number: int) -> DataFrame | None:
    """Of all tagged rows, those that enter in one round, with no more slots than it uses."""
    entered = rounds_entered(plan)
    if number not in entered:
        return None
    if len(entered) > 1:
        rows = rows.filter(f"round = {number}")
    slots = [f"slot{slot}" for slot in plan.wire.slots_of(plan.rounds.rounds[number])]
    reports = ["CAST(NULL AS STRING) AS report"] if number else []
    return rows.selectExpr("at", "hash", *slots, *reports)


def no_rows(plan: JoinPlan, spark: SparkSession) -> DataFrame:
    """What a split gives for streams without rows."""
    slots = [(f"slot{slot}", kind) for slot, kind in enumerate(plan.wire.slots)]
    fixed = [("at", pa.int64()), ("hash", pa.int64())]
    schema = pa.schema([*fixed, *slots, ("round", pa.int32())])
    return spark.createDataFrame([], from_arrow_schema(schema))


def sent_schema(plan: JoinPlan, number: int) -> StructType:
    """The schema of what workers send into a round."""
    a_round = plan.rounds.rounds[number]
    return from_arrow_schema(plan.wire.schema(a_round, reports=True))


def rehashed(plan: JoinPlan, number: int, sent: DataFrame) -> DataFrame:
    """What workers sent into a round, hashed as rows of sources are."""
    a_round = plan.rounds.rounds[number]
    cases = " ".join(
        f"WHEN {tag} THEN {_hash_of_slots(plan, port)}"
        for tag, port in enumerate(a_round.ports)
    )
    slots = [f"slot{slot}" for slot in plan.wire.slots_of(a_round)]
    hashed = f"coalesce(hash, CASE at & {TAGS} {cases} ELSE 0L END) AS hash"
    return sent.selectExpr("at", hashed, *slots, "report")


def _hash_of_slots(plan: JoinPlan, port: Port) -> str:
    if plan.wire.layout(port).recovered:
        return "0L"  # what has no key but its hash comes with it
    parts = [hashable_slot(plan, slot) for slot in hashed_slots(plan, port)]
    return f"xxhash64({', '.join(parts or ['0'])})"


def hashable_slot(plan: JoinPlan, slot: int) -> str:
    """The value in a slot such that equal keys hash alike."""
    name = f"slot{slot}"
    return _hashable(name, {name: from_arrow_type(plan.wire.slots[slot])})


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _microseconds(name: str, kinds: Mapping[str, DataType]) -> str:
    """An event time as microseconds since 1970, whatever the session's time zone."""
    q = _quoted(name)
    if not isinstance(kinds[name], TimestampNTZType):
        return f"unix_micros({q})"
    days = f"datediff(cast({q} AS date), DATE'1970-01-01')"
    most_days = LATEST_US // 86_400_000_000 + 1  # the product of more may not fit 64 bits
    return (
        f"(CASE WHEN abs({days}) <= {most_days} THEN {days} * 86400000000L"
        f" + hour({q}) * 3600000000L + minute({q}) * 60000000L"
        f" + cast(extract(SECOND FROM {q}) * 1000000 AS bigint) END)"
    )


def _is_float(kind: DataType) -> bool:
    return isinstance(kind, FloatType | DoubleType)


def _hashable(name: str, kinds: Mapping[str, DataType]) -> str:
    """A key column such that equal keys hash alike: adding zero turns -0.0 into 0.0."""
    kind = kinds[name]
    if not _is_float(kind):
        return _quoted(name)
    return f"({_quoted(name)} + CAST(0 AS {kind.simpleString()}))"


def slot_expression(
    plan: JoinPlan, number: int, assignments: Sequence[Sequence[int]], slot_keys: Sequence[int]
) -> str:
    """The slot key of the worker that a row of a round goes to, as SQL.

    A row that can never join goes where its task's other such rows go, only to be counted; so
    does a report.
    """
    by_task = ",".join(map(str, slot_keys))
    cases = []
    ports = plan.rounds.rounds[number].ports
    for space in sorted({port.space for port in ports}):
        tags = ",".join(str(tag) for tag, port in enumerate(ports) if port.space == space)
        by_group = _looked_up(
            _group(plan), [slot_keys[worker] for worker in assignments[space]]
        )
        cases.append(f"WHEN at & {TAGS} IN ({tags}) THEN {by_group}")
    other = f"element_at(array({by_task}), spark_partition_id() % {len(slot_keys)} + 1)"
    return f"CASE {' '.join(cases)} ELSE {other} END"


def _looked_up(place: str, values: Sequence[int]) -> str:
    """`values[place]` as SQL.

    The list is a single constant to Spark, quickly read, and no part of the code that it
    generates: so the same code, compiled long ago, goes on when groups get other workers.
    """
    listed = f"cast(split('{','.join(map(str, values))}', ',') AS array<int>)"
    return f"element_at({listed}, cast({place} AS int) + 1)"
