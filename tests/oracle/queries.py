"""Random bound queries over random rows: everything that the engine promises to get right.

The shape of a case is Hypothesis's choice, and shrinks. The rest is drawn evenly from a seed:
left to Hypothesis, nine cases in ten would have no result at all.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from braid.model.expression import GROUPED, Call, Column, Expression, Literal, columns_of
from braid.model.query import (
    UNBOUNDED_US,
    WINDOW_END,
    Aggregate,
    Derived,
    Grouping,
    History,
    Key,
    Output,
    Query,
    StreamRef,
    TimeBound,
)
from tests.oracle import spark_texts
from tests.oracle.answers import counted, oracle, prepared
from tests.oracle.random_expressions import random_expression

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Mapping, Sequence

EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TIME = pa.timestamp("us", "UTC")
EVENT_TIME = "ts"

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bigint": (pa.int64(), [0, 1, -1, 2**62, -(2**63), 7]),
    "int": (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31)]),
    "tinyint": (pa.int8(), [0, 5, -128, 127]),
    "date": (pa.date32(), [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1900, 1, 1)]),
    "timestamp": (TIME, [EPOCH, EPOCH + dt.timedelta(microseconds=1)]),
    "string": (pa.string(), ["", "a", "ab", "é", "A", "a" * 40]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\0", b"x"]),
    "boolean": (pa.bool_(), [True, False]),
    "decimal": (pa.decimal128(12, 2), [Decimal("0.00"), Decimal("1.10"), Decimal("-9.99")]),
    "double": (pa.float64(), [0.0, -0.0, 1.5, float("nan"), float("inf")]),
}
PAYLOAD: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "v": ("int", pa.int64(), [0, 1, 2, 3, 3, 6, -2, None]),
    "w": ("float", pa.float64(), [0.0, -0.0, 0.5, 1.25, 2.0, -3.75, 7.5, float("nan"), None]),
    "s": ("string", pa.string(), ["", "a", "a", "b", "ab", "B", None]),
    "d": (
        "decimal",
        pa.decimal128(10, 2),
        [Decimal("1.50"), Decimal("-0.25"), Decimal(3), None],
    ),
}
NESTED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.list_(pa.int32()), [[], [1, 2], None]),
    (pa.struct([("x", pa.int32()), ("y", pa.string())]), [{"x": 1, "y": None}, None]),
]
DERIVED = {
    "int": spark_texts.INTEGERS,
    "float": spark_texts.FLOATS,
    "string": spark_texts.STRINGS,
    "decimal": spark_texts.DECIMALS,
}

MOST_ROWS = {2: 24, 3: 14, 4: 8, 5: 6}
"""Rows of a stream, by the number of streams; few, so that results do not explode."""

GRID_MS = 20
"""Event times, windows and bounds lie on a grid, so that many fall on a bound."""

SPAN_MS = 1000
"""From the first to the last event time, but for rows that come late by as much as they may."""

SHAPES = ("one", "composite", "chain", "star", "cycle", "mixed")
STYLES = ("plain", "history", "grouped")


@dataclass(frozen=True)
class Case:
    """A query, all rows of each source in arrival order, and how to cut them into batches.

    No row is more than `lateness_us` behind one before it of its source, so none is late.
    """

    query: Query
    tables: Mapping[str, pa.Table]  # by source
    cuts: Mapping[str, tuple[int, ...]]  # by source: where each batch ends
    lateness_us: int
    groups: int
    workers: int
    hash_bits: int
    restarts: tuple[int, ...]  # before each batch: with how many workers, or 0 for none

    @property
    def rows(self) -> tuple[pa.Table, ...]:
        """All rows, by the stream's number."""
        return tuple(self.tables[ref.source] for ref in self.query.streams)

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        return {source: table.schema for source, table in self.tables.items()}

    @property
    def closed_us(self) -> int:
        """The watermark after all batches: the last moment that groups are complete for.

        Rows that cannot join, for a filter or a null, do not move it.
        """
        newest = [self._newest_us(number) for number in range(len(self.query.streams))]
        return min(newest) - self.lateness_us

    def _newest_us(self, number: int) -> int:
        rows = prepared(self.query.streams[number], self.rows[number])
        names = {name for key in self.query.keys if (name := key.of(number))}
        newest = pc.max(rows.select([*names, EVENT_TIME]).drop_null().column(EVENT_TIME))
        return int(newest.cast(pa.int64()).as_py() or -(2**55))

    def batches(self) -> list[dict[int, pa.Table]]:
        """The rows of each batch, by the stream's number."""
        return [
            {n: self.slice(ref.source, batch) for n, ref in enumerate(self.query.streams)}
            for batch in range(len(self.restarts))
        ]

    @cached_property
    def prepared_batches(self) -> list[dict[int, pa.Table]]:
        """The same as Catalyst hands them on; made once, for cases run by many plans."""
        streams = self.query.streams
        return [
            {number: prepared(streams[number], rows) for number, rows in batch.items()}
            for batch in self.batches()
        ]

    def slice(self, source: str, batch: int) -> pa.Table:
        """The rows of one source in one batch."""
        cuts = self.cuts[source]
        lower = cuts[batch - 1] if batch else 0
        return self.tables[source].slice(lower, cuts[batch] - lower)

    def expected(self) -> Counter[tuple[Any, ...]]:
        """DuckDB's answer."""
        closed_us = self.closed_us if self.query.grouping else None
        return self.counted(oracle(self.query, self.rows, EVENT_TIME, closed_us=closed_us))

    def counted(self, results: pa.Table) -> Counter[tuple[Any, ...]]:
        """Results of this query as a multiset."""
        return counted(results, self.query)


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    most_batches: int = 6,
    shapes: Sequence[str] = SHAPES,
    styles: Sequence[str] = STYLES,
    streams: Sequence[int] = (2, 3, 2, 3, 4, 5),
    partition_by_key: bool = True,
) -> Case:
    """Random cases of the given shapes of key graphs and styles of queries.

    `partition_by_key` has histories partition by at least the columns that are joined on.
    """
    number = draw(st.sampled_from(streams))
    shape = draw(st.sampled_from(shapes))
    style = draw(st.sampled_from(styles))
    # Counted down, for Hypothesis prefers small numbers to tell more than large ones.
    most_rows = MOST_ROWS[number] - draw(st.integers(0, MOST_ROWS[number] // 3))
    batches = most_batches - draw(st.integers(0, most_batches - 1))
    groups = draw(st.sampled_from([1, 2, 7, 64, 512]))
    workers = draw(st.integers(1, min(8, groups)))
    lateness_ms = draw(st.sampled_from([0, 40] if style == "grouped" else [0, 40, 1000]))
    seed = draw(st.integers(0, 2**32))
    # Hypothesis likes to draw the same seed again; with another shape it means other rows.
    random = Random(f"{seed} {number} {shape} {style} {most_rows} {batches} {lateness_ms}")
    made = _Making(random, number, shape, style, partition_by_key)
    return _case(made, most_rows, batches, lateness_ms, groups, workers)


def fixed_case(shape: str, streams: int) -> Case:
    """The first plain case of a shape that has results, but not very many."""
    for seed in count():
        made = _Making(Random(f"{seed} {shape} {streams}"), streams, shape, "plain", True)
        case = _case(made, MOST_ROWS[streams], 3, 40, 7, 2)
        if 3 <= case.expected().total() <= 300:
            return case
    raise AssertionError("seeds do not end")


def _case(
    made: _Making, most_rows: int, batches: int, lateness_ms: int, groups: int, workers: int
) -> Case:
    random, query = made.random, _lawful(made.query())
    tables = {
        source: made.table(source, random.randint(most_rows * 2 // 3, most_rows), lateness_ms)
        for source in query.sources()
    }
    return Case(
        query,
        tables,
        {source: _cuts(random, table.num_rows, batches) for source, table in tables.items()},
        lateness_ms * 1000,
        groups,
        workers,
        random.choice([2, 64]),
        tuple(random.choice([0, 0, random.randint(1, min(8, groups))]) for _ in range(batches)),
    )


def _lawful(query: Query) -> Query:
    """What a binder would make of it: conditions of several streams, and names that differ."""
    conditions = tuple(
        c for c in query.conditions if len({column.stream for column in columns_of(c)}) > 1
    )
    output = tuple({out.name: out for out in query.output}.values())
    return replace(query, conditions=conditions, output=output)


@dataclass
class _Making:
    """One case in the making."""

    random: Random
    streams: int
    shape: str
    style: str
    partition_by_key: bool
    key_sets: list[list[int]] = field(init=False)  # of each key the streams that it connects
    kinds: list[str] = field(init=False)  # of each key the name of its type
    sources: list[str] = field(init=False)  # of each stream
    values: list[list[Any]] = field(init=False)  # of each key what it is drawn from
    nested: dict[str, tuple[pa.DataType, list[Any]]] = field(init=False)  # by source
    time_type: pa.DataType = field(init=False)

    def __post_init__(self) -> None:
        self.key_sets = key_sets(self.random, self.shape, self.streams)
        self.kinds = [self.random.choice(sorted(KEYS)) for _ in self.key_sets]
        few = 1 + 6 // (self.streams * len(self.key_sets))
        self.values = [_few(self.random, KEYS[kind][1], few) for kind in self.kinds]
        self.sources = []
        for number in range(self.streams):
            again = self.sources and self.random.random() < 0.15
            self.sources.append(self.random.choice(self.sources) if again else f"s{number}")
        self.nested = {source: self.random.choice(NESTED) for source in self.sources}
        self.time_type = self.random.choice([TIME, TIME, TIME, pa.timestamp("us")])

    @cached_property
    def refs(self) -> list[StreamRef]:
        return [self._ref(number) for number in range(self.streams)]

    def query(self) -> Query:
        keys = tuple(
            Key(tuple(Column(stream, self._key_column(key, stream)) for stream in streams))
            for key, streams in enumerate(self.key_sets)
        )
        grouping = self._grouping() if self.style == "grouped" else None
        return Query(
            text="random",
            streams=tuple(self.refs),
            keys=keys,
            output=tuple(self._grouped_output(grouping) if grouping else self._output()),
            conditions=tuple(self._conditions()),
            bounds=tuple(self._bounds()),
            grouping=grouping,
        )

    def _ref(self, number: int) -> StreamRef:
        random = self.random
        wide = [1_000_000, 5_000_000, UNBOUNDED_US]
        narrow = [0, 20_000, 100_000, 400_000, 400_000]
        window_us = random.choice(narrow if self._seldom(0.8) else wide)
        history = None
        if self.style == "history" and (number == 0 or random.random() < 0.4):
            history, window_us = self._history(number), UNBOUNDED_US
        texts = [spark_texts.key_texts(f"k{k}").get(self.kinds[k]) for k in self._keys(number)]
        derived = [text for text, _ in filter(None, texts) if random.random() < 0.4]
        for meanings in DERIVED.values():
            derived += [text for text in meanings if random.random() < 0.15]
        if history is not None:
            derived = [text for text in derived if "`k" not in text]
        return StreamRef(
            source=self.sources[number],
            alias=f"t{number}",
            window_us=window_us,
            history=history,
            derived=tuple(Derived(f"{text} AS {number}", text) for text in derived),
            filter=random.choice(list(spark_texts.FILTERS)) if self._seldom(0.4) else None,
        )

    def _seldom(self, times: float) -> bool:
        """True for about so many streams of a query, however many it has."""
        return self.random.random() < times / self.streams

    def _keys(self, number: int) -> list[int]:
        return [key for key, streams in enumerate(self.key_sets) if number in streams]

    def _key_column(self, key: int, stream: int) -> str:
        text = spark_texts.key_texts(f"k{key}").get(self.kinds[key], ("",))[0]
        found = (each.name for each in self.refs[stream].derived if each.sql == text)
        return next(found, f"k{key}")

    def _history(self, number: int) -> History:
        names = [f"k{key}" for key in self._keys(number)]
        if not self.partition_by_key:
            names = [name for name in names if self.random.random() < 0.5]
        if self.random.random() < 0.3:
            names.append(self.random.choice(list(PAYLOAD)))
        return History(tuple(names), self.random.choice([1, 1, 2, 3]))

    def _columns(self, streams: Iterable[int]) -> dict[str, list[Column]]:
        """Columns to build expressions of, by kind."""
        columns: dict[str, list[Column]] = {"time": []}
        for stream in streams:
            columns["time"].append(Column(stream, EVENT_TIME))
            for name, (kind, _, _) in PAYLOAD.items():
                columns.setdefault(kind, []).append(Column(stream, name))
            for derived in self.refs[stream].derived:
                kinds = (kind for kind, texts in DERIVED.items() if derived.sql in texts)
                for kind in kinds:
                    columns[kind].append(Column(stream, derived.name))
        return columns

    def _expression(self, kind: str, depth: int) -> Expression:
        return random_expression(self.random, kind, self._columns(range(self.streams)), depth)

    def _conditions(self) -> list[Expression]:
        if self.random.random() < 0.5:
            return []
        condition = self._expression("bool", 2)
        if self.random.random() < 0.8:
            # Mostly true, so that there is something to compare.
            pair = [Call("+", (Column(n, "v"), Literal(n))) for n in (0, self.streams - 1)]
            differ = Call("coalesce", (Call("<>", tuple(pair)), Literal(True)))
            condition = Call("or", (condition, differ))
        return [condition]

    def _bounds(self) -> list[TimeBound]:
        bounds = []
        for stream in range(self.streams):
            if self._seldom(0.3):
                other = (stream + self.random.randint(1, self.streams - 1)) % self.streams
                most_ms = self.random.choice([-20, 0, 40, 100, 400, 400])
                bounds.append(TimeBound(stream, other, most_ms * 1000))
        return bounds

    def _output(self) -> list[Output]:
        output = []
        for number, ref in enumerate(self.refs):
            names = [EVENT_TIME, *self.random.sample(["v", "w", "s", "d", "x"], 2)]
            names += [self._key_column(key, number) for key in self._keys(number)]
            names += [derived.name for derived in ref.derived if self.random.random() < 0.5]
            output += [Output(f"{name} {number}", Column(number, name)) for name in names]
        for number in range(self.random.choice([0, 1, 2])):
            kind = self.random.choice(["int", "float", "decimal", "string", "bool", "duration"])
            output.append(Output(f"expression {number}", self._expression(kind, 2)))
        self.random.shuffle(output)
        return output

    def _grouping(self) -> Grouping:
        random = self.random
        keys = [self._group_key() for _ in range(random.choice([0, 1, 1, 2]))]
        aggregates = [Aggregate("count", None)]
        for _ in range(random.choice([0, 1, 2, 3])):
            function = random.choice(["count", "sum", "sum", "min", "max"])
            kinds = ["int", "float", "decimal", "string", "time"]
            kind = random.choice(kinds[:3] if function == "sum" else kinds)
            # Sums of quotients would depend on the order of summation.
            depth = 0 if kind == "float" else 1
            aggregates.append(Aggregate(function, self._expression(kind, depth)))
        random.shuffle(aggregates)
        having = None
        if random.random() < 0.4:
            count = aggregates.index(Aggregate("count", None))
            least = Literal(random.choice([1, 1, 2, 3]))
            having = Call(">=", (Column(GROUPED, f"aggregate {count}"), least))
        slide_ms = random.choice([20, 40, 60, 100])
        return Grouping(tuple(keys), tuple(aggregates), slide_ms * 1000, having)

    def _group_key(self) -> Expression:
        key = self.random.randrange(len(self.key_sets))
        stream = self.random.choice(self.key_sets[key])
        if self.random.random() < 0.4:
            return Column(stream, self._key_column(key, stream))
        return self._expression(self.random.choice(["int", "string", "float", "bool"]), 1)

    def _grouped_output(self, grouping: Grouping) -> list[Output]:
        names = [f"key {n}" for n in range(len(grouping.keys))]
        names += [f"aggregate {n}" for n in range(len(grouping.aggregates))]
        output = [Output(name, Column(GROUPED, name)) for name in (*names, WINDOW_END)]
        functions = [aggregate.function for aggregate in grouping.aggregates]
        counts = [n for n, function in enumerate(functions) if function == "count"]
        sums = [n for n, function in enumerate(functions) if function == "sum"]
        for number in sums:
            both = (f"aggregate {number}", f"aggregate {self.random.choice(counts)}")
            average = Call("/", tuple(Column(GROUPED, name) for name in both))
            output.append(Output(f"average {number}", average))
        later = Call("+", (Column(GROUPED, WINDOW_END), Literal(dt.timedelta(seconds=1))))
        output.append(Output("later", later))
        return self.random.sample(output, self.random.randint(1, len(output)))

    def table(self, source: str, count: int, lateness_ms: int) -> pa.Table:
        """Rows of one source, with all columns that its streams join on."""
        random = self.random
        streams = [number for number, name in enumerate(self.sources) if name == source]
        keys = sorted({key for number in streams for key in self._keys(number)})
        columns = {
            f"k{key}": pa.array(
                random.choices(self.values[key], k=count), KEYS[self.kinds[key]][0]
            )
            for key in keys
        }
        columns[EVENT_TIME] = _times(random, count, lateness_ms).cast(self.time_type)
        for name, (_, kind, cells) in PAYLOAD.items():
            columns[name] = pa.array(random.choices(cells, k=count), kind)
        kind, cells = self.nested[source]
        columns["x"] = pa.array(random.choices(cells, k=count), kind)
        return pa.table(columns)


def key_sets(random: Random, shape: str, streams: int) -> list[list[int]]:
    """For a shape of key graph, the streams that each key connects; all are connected."""
    everyone = list(range(streams))
    chain = [[number, number + 1] for number in range(streams - 1)]
    match shape:
        case "one":
            return [everyone]
        case "composite":
            return [everyone] * random.choice([2, 2, 3])
        case "chain":
            return chain
        case "star":
            return [[0, number] for number in everyone[1:]]
        case "cycle":
            return [*chain, [0, streams - 1]]
    sets: list[list[int]] = []
    for number in everyone[1:]:
        if sets and random.random() < 0.4:
            random.choice(sets).append(number)
        else:
            sets.append([random.randrange(number), number])
    if random.random() < 0.5:
        sets.append(sorted(random.sample(everyone, random.randint(2, streams))))
    return sets


def _few(random: Random, values: list[Any], most: int) -> list[Any]:
    """Some of the values, one more often than others, and a null now and then."""
    some = random.sample(values, random.randint(1, min(most, len(values))))
    return some * 8 + some[:1] * random.choice([0, 16]) + [None] * random.choice([0, 0, 1, 2])


def _times(random: Random, count: int, lateness_ms: int) -> pa.Array:
    """Times in arrival order, from the whole of a second, and some of them equal."""
    steps, back = SPAN_MS // GRID_MS, lateness_ms // GRID_MS
    clock = sorted(random.choices(random.sample(range(steps), max(1, count * 2 // 3)), k=count))
    times: list[dt.datetime | None] = []
    for step in clock[:-1]:
        behind = random.choice([0, 0, back, random.randint(0, back)])
        moment = EPOCH + dt.timedelta(milliseconds=GRID_MS * (step - behind))
        times.append(None if random.random() < 0.05 else moment)
    # All streams end together, or the watermark would wait for the shortest.
    times.append(EPOCH + dt.timedelta(milliseconds=SPAN_MS))
    return pa.array(times, TIME)


def _cuts(random: Random, rows: int, batches: int) -> tuple[int, ...]:
    return (*sorted(random.randint(0, rows) for _ in range(batches - 1)), rows)
