"""The split: from the rows that were gathered to the wire's form, by a plan, in Catalyst.

Everything here is an expression over columns; no row passes through Python. `braid.plan.wire`
explains the form, `braid.spark.union` what rows have before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema

from braid.model.expression import Column
from braid.plan.wire import TAGS, tag_of
from braid.spark.task import REPORT
from braid.spark.union import hashable
from braid.state.groups import marked

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from braid.plan.join_plan import JoinPlan
    from braid.plan.placement import ByHash
    from braid.plan.rounds import Port, Round
    from braid.spark.union import Gathered, StreamUnion


@dataclass(frozen=True, slots=True)
class _Layer:
    """One port of a round for some streams of a frame, as text for Spark."""

    before: str | None
    columns: tuple[str, ...]
    after: str | None

    def of(self, rows: DataFrame) -> DataFrame:
        """The rows that go by these ports."""
        if self.before is not None:
            rows = rows.filter(self.before)
        rows = rows.selectExpr(*self.columns)
        return rows if self.after is None else rows.filter(self.after)


@dataclass(frozen=True, slots=True)
class Split:
    """How rows get the wire's form; the same for every batch.

    A frame is read once for each layer. So its ports are spread over as few layers as can be:
    in most rounds, every stream has a single one.
    """

    layers: Mapping[tuple[int, tuple[int, ...]], tuple[_Layer, ...]]  # by round and streams

    @classmethod
    def of(cls, plan: JoinPlan, union: StreamUnion, frames: Iterable[tuple[int, ...]]) -> Split:
        """The split of a plan; `frames` tells which streams have one together."""
        layers, seen, streams = {}, set[int](), list(frames)
        for number, a_round in enumerate(plan.rounds.rounds):
            for frame in streams:
                made, left = [], _ports(a_round, frame)
                while left:
                    ports = {stream: mine[0] for stream, mine in left.items()}
                    made.append(_layer(plan, union, number, frame, ports, seen))
                    seen |= ports.keys()
                    left = {stream: mine[1:] for stream, mine in left.items() if mine[1:]}
                layers[number, frame] = tuple(made)
        return cls(layers)

    def entering(self, rows: Gathered, number: int) -> list[DataFrame]:
        """The rows that enter in one round."""
        return [
            layer.of(frame)
            for streams, frame in rows.items()
            for layer in self.layers[number, streams]
        ]


@dataclass(frozen=True, slots=True)
class Splits:
    """The splits of all plans of a run, each made once."""

    union: StreamUnion
    _made: dict[Hashable, Split] = field(default_factory=dict, init=False)

    def entering(self, plan: JoinPlan, rows: Gathered, number: int) -> list[DataFrame]:
        """The rows that enter in one round of a plan."""
        key = plan.texts, plan.routes, plan.rounds.fed, tuple(rows)
        if key not in self._made:
            self._made[key] = Split.of(plan, self.union, rows)
        return self._made[key].entering(rows, number)


def _ports(a_round: Round, frame: Collection[int]) -> dict[int, list[int]]:
    """By stream of a frame, the ports by which its rows come into a round."""
    found: dict[int, list[int]] = {}
    for number, port in enumerate(a_round.ports):
        if port.stream is not None and port.stream in frame:
            found.setdefault(port.stream, []).append(number)
    return found


def _tagged(a_round: Round) -> dict[int, Port]:
    """The ports that rows are sent by, by tag."""
    return {tag_of(a_round, number): a_round.ports[number] for number in a_round.sent}


def _layer(
    plan: JoinPlan,
    union: StreamUnion,
    number: int,
    frame: tuple[int, ...],
    chosen: Mapping[int, int],
    seen: Collection[int],
) -> _Layer:
    """Some ports, one of each stream; rows that cannot join come where none was seen."""
    a_round = plan.rounds.rounds[number]
    ports = {stream: a_round.ports[port] for stream, port in chosen.items()}
    tags = {stream: tag_of(a_round, port) for stream, port in chosen.items()}
    before = dict.fromkeys(frame, "false")
    before |= {stream: f"at & {TAGS} = 0" if stream in seen else "true" for stream in tags}
    slots = [
        f"{_by_stream({s: _filled(plan, union, port, slot) for s, port in ports.items()})}"
        f" AS slot{slot}"
        for slot in plan.wire.slots_of(a_round)
    ]
    hashes = {stream: _hash(plan, union, port) for stream, port in ports.items()}
    tag = _by_stream({stream: f"{tag}L" for stream, tag in tags.items()})
    return _Layer(
        before=None if set(before.values()) == {"true"} else _by_stream(before),
        columns=(
            f"CASE WHEN at & {TAGS} = 0 THEN at | {tag} ELSE at END AS at",
            f"{_by_stream(hashes)} AS hash",
            *slots,
            *(["CAST(NULL AS STRING) AS report"] if number else []),
        ),
        after=_routed(plan, {tag: ports[stream] for stream, tag in tags.items()}),
    )


def _by_stream(values: Mapping[int, str]) -> str:
    """For each stream a value of its own, as SQL."""
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    cases = " ".join(f"WHEN {stream} THEN {value}" for stream, value in values.items())
    return f"CASE stream {cases} END"


def _filled(plan: JoinPlan, union: StreamUnion, port: Port, slot: int) -> str:
    """What a slot has of a port's rows."""
    layout = plan.wire.layout(port)
    if slot not in layout.slots:
        return "NULL"  # which gets its type from the streams that have a value here
    return union.name(layout.columns[layout.slots.index(slot)])


def _hash(plan: JoinPlan, union: StreamUnion, port: Port) -> str:
    assert port.stream is not None, "only a stream's own rows are split"
    names = [
        plan.query.keys[key].of(port.stream) for key in plan.rounds.spaces[port.space].keys
    ]
    columns = [Column(port.stream, name) for name in names if name is not None]
    return f"xxhash64({', '.join(map(union.hashable, columns)) or '0'})"


def _routed(plan: JoinPlan, ports: Mapping[int, Port]) -> str | None:
    """Which rows go by some ports: those of groups that go through their trees."""
    if not plan.routes:
        return None
    cases = []
    for tag, port in ports.items():
        marks = marked(plan.routes[port.tree], plan.groups).astype(int).tolist()
        cases.append(f"WHEN {tag} THEN {_looked_up(_group(plan), marks)} = 1")
    return f"CASE at & {TAGS} {' '.join(cases)} ELSE true END"


def _group(plan: JoinPlan) -> str:
    return f"shiftright(shiftrightunsigned(hash, 32) * {plan.groups}L, 32)"


def sent_schema(plan: JoinPlan, number: int) -> StructType | str:
    """The schema of what workers send out of a round: into the next, or reports alone."""
    if number + 1 == len(plan.rounds.rounds):
        return REPORT
    a_round = plan.rounds.rounds[number + 1]
    return from_arrow_schema(plan.wire.schema(a_round, reports=True))


def no_rows(spark: SparkSession, plan: JoinPlan, number: int) -> DataFrame:
    """What comes into a round in which nothing comes: workers are asked all the same.

    Spark cannot see that it is empty, or it would leave them out.
    """
    schema = from_arrow_schema(plan.wire.schema(plan.rounds.rounds[number], reports=False))
    return spark.createDataFrame(spark.sparkContext.emptyRDD(), schema)


def rehashed(plan: JoinPlan, number: int, sent: DataFrame) -> DataFrame:
    """What workers sent into a round, hashed as rows of sources are."""
    a_round = plan.rounds.rounds[number]
    cases = " ".join(
        f"WHEN {tag} THEN {_hash_of_slots(plan, port)}"
        for tag, port in _tagged(a_round).items()
    )
    slots = [f"slot{slot}" for slot in plan.wire.slots_of(a_round)]
    hashed = f"coalesce(hash, CASE at & {TAGS} {cases} ELSE 0L END) AS hash"
    return sent.selectExpr("at", hashed, *slots, "report")


def _hash_of_slots(plan: JoinPlan, port: Port) -> str:
    if plan.wire.layout(port).recovered:
        return "0L"  # what has no key but its hash comes with it
    parts = [_hashable_slot(plan, slot) for slot in plan.hashed_slots(port)]
    return f"xxhash64({', '.join(parts or ['0'])})"


def _hashable_slot(plan: JoinPlan, slot: int) -> str:
    return hashable(f"slot{slot}", plan.wire.slots[slot])


def slot_expression(
    plan: JoinPlan, number: int, placements: Sequence[ByHash], slot_keys: Sequence[int]
) -> str:
    """The slot key of the worker that a row of a round goes to, as SQL.

    A row that can never join goes where its task's other such rows go, only to be counted; so
    does a report.
    """
    by_task = ",".join(map(str, slot_keys))
    cases = []
    ports = _tagged(plan.rounds.rounds[number])
    for space in sorted({port.space for port in ports.values()}):
        tags = ",".join(str(tag) for tag, port in ports.items() if port.space == space)
        owners = placements[space].owners
        by_group = _looked_up(_group(plan), [slot_keys[worker] for worker in owners])
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
