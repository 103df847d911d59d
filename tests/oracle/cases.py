"""Random queries over random rows, and DuckDB's answer to them."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from braid.join.plan import JoinPlan
from braid.join.wire import lay_out
from braid.model.query import OutputColumn, Query, StreamRef

EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TIME = pa.timestamp("us", "UTC")

KEYS: dict[str, tuple[tuple[pa.DataType, list[Any]], ...]] = {
    "bigint": ((pa.int64(), [0, 1, -1, 2**62, -(2**63), 7]),),
    "int": ((pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31)]),),
    "tinyint": ((pa.int8(), [0, 5, -128, 127]),),
    "date": ((pa.date32(), [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1900, 1, 1)]),),
    "timestamp": ((TIME, [EPOCH, EPOCH + dt.timedelta(microseconds=1)]),),
    "string": ((pa.string(), ["", "a", "ab", "ß", "a" * 40]),),
    "binary": ((pa.binary(), [b"", b"\0", b"\0\0", b"x"]),),
    "boolean": ((pa.bool_(), [True, False]),),
    "decimal": ((pa.decimal128(12, 2), [Decimal("0.00"), Decimal("1.10"), Decimal("-9.99")]),),
    "double": ((pa.float64(), [0.0, -0.0, 1.5, float("nan"), float("inf")]),),
    "pair": ((pa.int64(), [1, 2, 3]), (pa.string(), ["x", "y"])),
}
PAYLOADS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [1, 2, None]),
    (pa.string(), ["p", "", None]),
    (pa.list_(pa.int32()), [[], [1, 2], None]),
    (pa.struct([("x", pa.int32()), ("y", pa.string())]), [{"x": 1, "y": None}, None]),
    (pa.decimal128(10, 3), [Decimal("1.234"), None]),
]


@dataclass(frozen=True)
class Case:
    """A query, all rows of each stream in arrival order, and how to cut them into batches."""

    plan: JoinPlan
    rows: tuple[pa.Table, ...]
    cuts: tuple[tuple[int, ...], ...]  # per stream: where each batch ends
    workers: int
    hash_bits: int
    restarts: tuple[int, ...]  # before each batch: with how many workers, or 0 for none

    def batches(self) -> list[dict[int, pa.Table]]:
        batches = []
        for number in range(len(self.cuts[0])):
            batch = {}
            for stream, table in enumerate(self.rows):
                lower = self.cuts[stream][number - 1] if number else 0
                batch[stream] = table.slice(lower, self.cuts[stream][number] - lower)
            batches.append(batch)
        return batches

    def expected(self) -> Counter[tuple[Any, ...]]:
        return counted(oracle(self.plan.query, self.rows, self.plan.wire.event_time))


MOST_ROWS = {2: 24, 3: 14, 4: 8, 5: 6, 6: 5}
"""Rows of a stream, by the number of streams; few, so that results do not explode."""


@st.composite
def cases(draw: st.DrawFn, most_batches: int = 6) -> Case:
    """Everything the engine promises to get right, mixed at random.

    The shape of a case is Hypothesis's choice, and shrinks. The rest is drawn evenly from a
    seed: left to Hypothesis, nine cases in ten would have no result at all.
    """
    streams = draw(st.sampled_from([2, 3, 2, 3, 4, 5, 6]))
    # Counted down, for Hypothesis prefers small numbers to tell more than large ones.
    most_rows = MOST_ROWS[streams] - draw(st.integers(0, MOST_ROWS[streams] - 1))
    batches = most_batches - draw(st.integers(0, most_batches - 1))
    groups = draw(st.sampled_from([1, 2, 7, 64, 512]))
    workers = draw(st.integers(1, min(8, groups)))
    lateness_ms = draw(st.sampled_from([0, 40, 1000]))
    seed = draw(st.integers(0, 2**32))
    # Hypothesis likes to draw the same seed again; with another shape it means other rows.
    random = Random(f"{seed} {streams} {most_rows} {batches} {groups} {workers} {lateness_ms}")
    kinds = KEYS[random.choice(sorted(KEYS))]
    values = [_few(random, values, 8 // streams + 1) for _, values in kinds]
    refs, schemas, tables = [], {}, []
    for number in range(streams):
        payload, cells = random.choice(PAYLOADS)
        key = tuple(f"k{i}" for i in range(len(kinds)))
        window_ms = random.choice([0, 20, 100, 400, 400, 5000, 5000, 5000])
        refs.append(StreamRef(f"s{number}", f"s{number}", window_ms * 1000, key))
        count = random.randint(most_rows // 2, most_rows)
        columns = {
            name: pa.array(random.choices(some, k=count), kind)
            for name, (kind, _), some in zip(key, kinds, values, strict=True)
        }
        columns["ts"] = _times(random, count, lateness_ms)
        columns["v"] = pa.array(random.choices(cells, k=count), payload)
        tables.append(pa.table(columns))
        schemas[f"s{number}"] = tables[-1].schema
    output = [OutputColumn(f"v{n}", n, "v") for n in range(streams)]
    output += [OutputColumn(f"key{n}", n, "k0") for n in range(streams)]
    output += [OutputColumn(f"t{n}", n, "ts") for n in range(streams)]
    query = Query("random", tuple(refs), tuple(output))
    return Case(
        JoinPlan(query, lay_out(query, schemas, "ts"), groups, lateness_ms * 1000),
        tuple(tables),
        tuple(_cuts(random, table.num_rows, batches) for table in tables),
        workers,
        random.choice([2, 64]),
        tuple(random.choice([0, 0, random.randint(1, min(8, groups))]) for _ in range(batches)),
    )


def _few(random: Random, values: list[Any], most: int) -> list[Any]:
    """Some of the values, which then meet often, and a null now and then."""
    some = random.sample(values, random.randint(1, min(most, len(values))))
    return some * 4 + [None] * random.choice([0, 0, 1, 4])


def _times(random: Random, count: int, lateness_ms: int) -> pa.Array:
    """Times in arrival order: no row is more than the lateness behind one before it.

    All lie on a grid of 20 ms, as the windows do, so that many fall on a bound.
    """
    times: list[dt.datetime | None] = []
    clock = 0
    for _ in range(count):
        clock += random.choice([0, 0, 20, 40, 200])
        behind = random.choice([0, 0, lateness_ms, random.randint(0, lateness_ms // 20) * 20])
        moment = EPOCH + dt.timedelta(milliseconds=clock - behind)
        times.append(None if random.random() < 0.05 else moment)
    return pa.array(times, TIME)


def _cuts(random: Random, rows: int, batches: int) -> tuple[int, ...]:
    return (*sorted(random.randint(0, rows) for _ in range(batches - 1)), rows)


def oracle(query: Query, rows: tuple[pa.Table, ...], event_time: str) -> pa.Table:
    """DuckDB's answer over all rows at once."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone='UTC'")
        for number, table in enumerate(rows):
            db.register(f"r{number}", table)
        first, *others = range(len(rows))
        on = [
            f"r{first}.{query.streams[first].key[i]} = r{n}.{query.streams[n].key[i]}"
            for n in others
            for i in range(len(query.streams[first].key))
        ]
        newest = f"greatest({', '.join(f'r{n}.{event_time}' for n in range(len(rows)))})"
        windows = [
            f"r{n}.{event_time} IS NOT NULL AND epoch_us({newest}) - "
            f"epoch_us(r{n}.{event_time}) <= {stream.window_us}"
            for n, stream in enumerate(query.streams)
        ]
        select = ", ".join(f"r{o.stream}.{o.column} AS {o.name}" for o in query.output)
        tables = ", ".join(f"r{n}" for n in range(len(rows)))
        sql = f"SELECT {select} FROM {tables} WHERE {' AND '.join(on + windows)}"
        return db.sql(sql).to_arrow_table()


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """A table as a multiset of rows."""
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True)) if columns else Counter()


def _plain(value: Any) -> Any:
    """A value that compares and hashes as results should: by what is printed."""
    return repr(value) if isinstance(value, float | list | dict) else value
