"""Random queries through Spark give what DuckDB gives, as multisets, whatever the road.

`random_join` makes a query and its rows from a seed. A `Road` says how the rows come in and the
results go out. The kernel's own random cases, which are many more, are in `tests/oracle`.
"""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model import expression
from braid.model.query import Key, Output, Query, StreamRef
from tests.oracle.answers import counted, oracle
from tests.oracle.values import KEYS, PAYLOADS, TIME
from tests.spark.folders import date, stream_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from braid.engine.sink import Sink

Column = tuple[pa.DataType, list[Any]]
"""A type, and values to choose from."""

NTZ = pa.timestamp("us")
SPRING = dt.datetime(2024, 3, 10, 1, 59, 59, 900_000)  # in New York, 2:00 to 3:00 is missing
AUTUMN = dt.datetime(2024, 11, 3, 1, 59, 59, 900_000)  # and here, 1:00 to 2:00 comes twice
LONG_AGO = dt.datetime(1969, 12, 31, 23, 59, 59, 900_000)
NEW_YORK = "America/New_York"

KEY_KINDS: dict[str, tuple[Column, ...]] = KEYS | {
    "timestamp_ntz": ((NTZ, [SPRING, SPRING + dt.timedelta(seconds=1), AUTUMN]),),
    "smallint": ((pa.int16(), [0, -1, 2**15 - 1]),),
    "float": ((pa.float32(), [0.0, -0.0, 0.1, float("nan")]),),
    "triple": (
        (pa.float64(), [0.0, -0.0, float("nan")]),
        (pa.date32(), [dt.date(2024, 2, 29), dt.date(1969, 12, 31)]),
        (pa.decimal128(20, 4), [10**15, 1]),
    ),
}
RICH_PAYLOADS: list[Column] = [
    *PAYLOADS,
    (pa.map_(pa.string(), pa.int32()), [[], [("x", 1), ("y", None)], None]),
    (pa.list_(pa.struct([("x", pa.float64())])), [[{"x": float("nan")}, None], [], None]),
    (NTZ, [SPRING, AUTUMN, None]),
    (TIME, [SPRING.replace(tzinfo=dt.UTC), None]),
]
TEXT_KEYS: dict[str, tuple[Column, ...]] = {
    "bigint": KEYS["bigint"],
    "string": ((pa.string(), ["a", "ab", "ß", 'a, "b"', "a" * 40]),),
    "double": ((pa.float64(), [1.5, -0.0, 0.0, float("nan")]),),
    "boolean": KEYS["boolean"],
    "timestamp": KEYS["timestamp"],
    "pair": KEYS["pair"],
}
TEXT_PAYLOADS: list[Column] = [
    (pa.int64(), [1, 2**40, None]),
    (pa.string(), ["p", "q r", None]),
    (pa.float64(), [0.1, -2.5e300, None]),
]
JSON_PAYLOADS: list[Column] = [
    *TEXT_PAYLOADS,
    (pa.list_(pa.int64()), [[1, 2], [], None]),
    (pa.struct([("x", pa.int64()), ("y", pa.string())]), [{"x": 1, "y": "z"}, None]),
]
ROWS = {2: 40, 3: 25, 4: 14, 5: 10, 6: 8}
"""Rows of each stream, by the number of streams: results multiply."""


@dataclass(frozen=True)
class RandomJoin:
    """A query as text and as what it should be bound to, and each source's rows in files."""

    text: str
    query: Query
    lateness_ms: int
    files: dict[str, list[pa.Table]]
    workers: tuple[int, int]
    groups: int

    def rows(self) -> list[pa.Table]:
        """By place in FROM, all rows of the stream."""
        whole = {source: pa.concat_tables(parts) for source, parts in self.files.items()}
        return [whole[ref.source] for ref in self.query.streams]

    def expected(self) -> Counter[tuple[Any, ...]]:
        return counted(oracle(self.query, tuple(self.rows()), "ts"))

    def rows_with_nulls(self) -> int:
        """Rows that can never join."""
        count = 0
        for number, table in enumerate(self.rows()):
            names = (*key_of(self.query, number), "ts")
            columns = (table.column(name).to_pylist() for name in names)
            count += sum(None in cells for cells in zip(*columns, strict=True))
        return count


def random_join(seed: int, *, key: str, road: str = "parquet") -> RandomJoin:
    """A query over two to six streams that has some results, and all their rows."""
    streams = 2 + seed % 5
    tries = (_random_join(random.Random(f"{seed}/{n}"), streams, key, road) for n in count())
    return next(join for join in tries if 10 <= join.expected().total() <= 20_000)


def _random_join(rng: random.Random, streams: int, key: str, road: str) -> RandomJoin:
    text_road = road in ("csv", "jsonl")
    kinds = [_fewer(rng, kind) for kind in (TEXT_KEYS if text_road else KEY_KINDS)[key]]
    payloads = {"csv": TEXT_PAYLOADS, "jsonl": JSON_PAYLOADS}.get(road, RICH_PAYLOADS)
    lateness_ms = rng.choice([0, 50, 1000])
    start = rng.choice([SPRING, AUTUMN, LONG_AGO])
    time = TIME if text_road or rng.random() < 0.5 else NTZ
    sources = [f"s{n}" for n in range(streams - (rng.random() < 0.4))]
    files = {}
    for source in sources:
        columns = {f"k{i}": kind for i, kind in enumerate(kinds)}
        columns |= {f"j{i}": kind for i, kind in enumerate(kinds)}  # for self-joins: k = j
        columns["v"] = rng.choice(payloads)
        table = _random_rows(rng, ROWS[streams], columns, time, start, lateness_ms)
        files[source] = _cut(rng, table, at_least=1 if text_road else 0)
    refs = [_random_ref(rng, n, sources) for n in range(streams)]
    letters = [rng.choice("jk") if n >= len(sources) else "k" for n in range(streams)]
    keys = [tuple(f"{letter}{i}" for i in range(len(kinds))) for letter in letters]
    output = [
        Output(f"{name}_{n}", expression.Column(n, column))
        for n in range(streams)
        for name, column in (("v", "v"), ("t", "ts"), ("k", keys[n][-1]))
        if name == "v" or rng.random() < 0.7
    ]
    rng.shuffle(output)
    query = Query("", tuple(refs), equal(keys), tuple(output))
    workers = rng.randint(1, 8), rng.randint(1, 8)
    groups = rng.choice([1, 2, 7, 64, 512])
    return RandomJoin(_as_text(rng, query), query, lateness_ms, files, workers, groups)


def _fewer(rng: random.Random, column: Column) -> Column:
    return column[0], rng.sample(column[1], rng.randint(1, len(column[1])))


def equal(keys: Sequence[Sequence[str]]) -> tuple[Key, ...]:
    """Keys of which every stream has one column in each place."""
    return tuple(
        Key(tuple(expression.Column(n, name) for n, name in enumerate(part)))
        for part in zip(*keys, strict=True)
    )


def key_of(query: Query, number: int) -> tuple[str, ...]:
    """The columns that a stream is joined on."""
    return tuple(name for key in query.keys if (name := key.of(number)))


def _random_ref(rng: random.Random, n: int, sources: Sequence[str]) -> StreamRef:
    again = n >= len(sources)
    source = rng.choice(sources) if again else sources[n]
    windows_us = [100_500, 400_000, 5_000_000] if n else [0, 1, 20_000, 400_000]
    return StreamRef(source, f"again{n}" if again else source, rng.choice(windows_us))


def _random_rows(
    rng: random.Random,
    count: int,
    columns: dict[str, Column],
    time: pa.DataType,
    start: dt.datetime,
    lateness_ms: int,
) -> pa.Table:
    """Rows in arrival order, none more than the lateness behind one before it.

    The first has no nulls, so that the columns of a text file can be told from it.
    """
    cells = {name: _random_cells(rng, kind, count) for name, kind in columns.items()}
    clock_us, times = 0, []
    for row in range(count):
        clock_us += rng.choice([0, 0, 1, 1_000, 30_000, 150_000])
        behind_us = rng.randint(0, lateness_ms * 1000) if rng.random() < 0.4 else 0
        moment = start + dt.timedelta(microseconds=clock_us - behind_us)
        times.append(moment if rng.random() < 0.95 or not row else None)
    zone = dt.UTC if time.tz else None
    cells["ts"] = pa.array([t and t.replace(tzinfo=zone) for t in times], time)
    return pa.table(cells)


def _random_cells(rng: random.Random, column: Column, count: int) -> pa.Array:
    kind, values = column
    given = [value for value in values if value is not None]
    heavy = [10 if rng.random() < 0.2 else 1 for _ in given]
    cells = rng.choices(given, heavy, k=count)
    if None in values or rng.random() < 0.5:
        cells[1:] = [None if rng.random() < 0.1 else cell for cell in cells[1:]]
    return pa.array(cells, kind)


def _cut(rng: random.Random, table: pa.Table, at_least: int) -> list[pa.Table]:
    """Two or three files' worth of rows; some may be empty."""
    cuts = sorted(rng.randint(at_least, table.num_rows) for _ in range(rng.randint(1, 2)))
    bounds = [0, *cuts, table.num_rows]
    return [table.slice(a, b - a) for a, b in pairwise(bounds)]


def _as_text(rng: random.Random, query: Query) -> str:
    """A query as one of the many texts that mean it."""
    aliases = [ref.alias for ref in query.streams]
    columns = [(o.name, next(expression.columns_of(o.value))) for o in query.output]
    select = [f"{aliases[c.stream]}.{c.column} AS {name}" for name, c in columns]
    streams = []
    for ref in query.streams:
        window = rng.choice(
            [f"{ref.window_us / 1000:f} MILLISECONDS", f"{ref.window_us / 1e6:f} second"]
        )
        alias = (
            "" if ref.alias == ref.source else rng.choice([f" {ref.alias}", f" AS {ref.alias}"])
        )
        streams.append(f"{ref.source}{alias} [RANGE {window}]")
    equalities = []
    for n in range(1, len(aliases)):
        other = rng.randrange(n)
        for one, two in zip(key_of(query, n), key_of(query, other), strict=True):
            sides = [f"{aliases[n]}.{one}", f"{aliases[other]}.`{two}`"]
            rng.shuffle(sides)
            equalities.append(" = ".join(sides))
    return (
        f"SELECT {', '.join(select)}\nFROM {', '.join(streams)}\n"
        f"WHERE {' AND '.join(equalities)}"
    )


# Roads in


@dataclass
class Road:
    """Brings a join's files in, in the order of their numbers, and its results out."""

    join: RandomJoin
    folder: Path
    source: str  # the format of folders, or "frames"
    sink: str
    spark: SparkSession
    results: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    runs: list[braid.Run] = field(default_factory=list)

    def add_files(self, lower: int, upper: int | None = None) -> None:
        suffix = "parquet" if self.source == "frames" else self.source
        for source, parts in self.join.files.items():
            folder = self.folder / source
            folder.mkdir(parents=True, exist_ok=True)
            for number, table in list(enumerate(parts))[lower:upper]:
                path = folder / f"{number:03}.{suffix}"
                WRITERS[suffix](table, path)
                date(path, number)

    def travel(self, workers: int) -> None:
        """Run the query over the files there are that no earlier run has taken."""
        join = self.join
        bound = braid.query(
            join.text,
            event_time="ts",
            lateness=f"{join.lateness_ms} milliseconds",
            **{source: self._stream(source) for source in join.files},
        )
        sink, collect = self._sink()
        run = bound.start(
            checkpoint=self.folder / "checkpoint",
            sink=sink,
            workers=workers,
            groups=join.groups,
            available_now=True,
        )
        self.runs.append(run)
        assert run.await_termination(240)
        collect()

    def _stream(self, source: str) -> Any:
        folder = self.folder / source
        if self.source != "frames":
            return braid.files(folder)
        schema = self.spark.read.parquet(str(folder)).schema
        return stream_of(folder, self.spark, schema)

    def _sink(self) -> tuple[Sink, Callable[[], None]]:
        """A sink, and what puts its results into ours."""
        if self.sink == "parquet":
            out = self.folder / "out"
            return braid.sinks.parquet(out), lambda: self._collect_anew(out)
        if self.sink == "memory":
            memory = braid.sinks.memory()
            return memory, lambda: self.results.update(counted(memory.table()))
        return braid.sinks.callback(self._take), lambda: None

    def _collect_anew(self, out: Path) -> None:
        self.results = published(out)

    def _take(self, frame: DataFrame, batch: int) -> None:
        self.results.update(counted(frame.toArrow()))

    def check(self) -> None:
        join = self.join
        assert self.results == join.expected()
        done = [run.progress for run in self.runs]
        assert sum(p.input_rows for p in done) == sum(table.num_rows for table in join.rows())
        assert sum(p.null_rows for p in done) == join.rows_with_nulls()
        assert sum(p.late_rows for p in done) == 0


def published(out: Path) -> Counter[tuple[Any, ...]]:
    """All rows of a folder of results."""
    results: Counter[tuple[Any, ...]] = Counter()
    for path in sorted(out.glob("__batch=*/*.parquet")):
        results.update(counted(pq.ParquetFile(path).read()))
    return results


def _write_jsonl(table: pa.Table, path: Path) -> None:
    with path.open("w") as file:
        for row in table.to_pylist():
            file.write(json.dumps({name: _plain(cell) for name, cell in row.items()}) + "\n")


def _write_csv(table: pa.Table, path: Path) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(table.column_names)
        for row in table.to_pylist():
            rows.writerow("NaN" if cell != cell else _plain(cell) for cell in row.values())


def _plain(cell: Any) -> Any:
    return cell.isoformat().replace("+00:00", "Z") if isinstance(cell, dt.date) else cell


WRITERS = {"parquet": pq.write_table, "jsonl": _write_jsonl, "csv": _write_csv}

# Every key type once over folders or streaming frames; those that hash oddly over both.
KEY_NAMES = sorted(KEY_KINDS)
ODD_KEYS = ("decimal", "double", "float", "string", "timestamp_ntz", "triple")
ROADS = [
    *[(seed, key, ("parquet", "frames")[seed % 2]) for seed, key in enumerate(KEY_NAMES, 100)],
    *[
        (seed, key, ("frames", "parquet")[KEY_NAMES.index(key) % 2])
        for seed, key in enumerate(ODD_KEYS, 200)
    ],
    *[(seed, key, "csv") for seed, key in enumerate(sorted(TEXT_KEYS)[::2], 300)],
    *[(seed, key, "jsonl") for seed, key in enumerate(sorted(TEXT_KEYS)[1::2], 400)],
]
SINKS = ("parquet", "memory", "callback")


@pytest.mark.spark
@pytest.mark.parametrize(("seed", "key", "source"), ROADS)
def test_any_join_equals_duckdb(
    spark: SparkSession, tmp_path: Path, seed: int, key: str, source: str
) -> None:
    """Every third case stops half way, and goes on with another number of workers."""
    join = random_join(seed, key=key, road=source)
    session = in_zone(spark, NEW_YORK if seed % 4 > 1 else "UTC")
    road = Road(join, tmp_path, source, SINKS[seed % 3], session)
    road.add_files(0, 1)
    if seed % 3 == seed // 100 % 3:
        road.travel(join.workers[0])
    road.add_files(1)
    road.travel(join.workers[1])
    road.check()


def in_zone(spark: SparkSession, zone: str) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    return session


PAIR = "SELECT a.v AS va, b.v AS vb, a.ts AS ta, b.ts AS tb FROM a [RANGE {0}], b [RANGE {0}] "
PAIR += "WHERE a.k = b.k"


def pair_of(rows: pa.Table, window: str, window_us: int) -> RandomJoin:
    """A join of rows, in two files, with themselves."""
    names = ("va", "vb", "ta", "tb")
    kinds = {"v": "v", "t": "ts"}
    output = (Output(n, expression.Column("ab".index(n[1]), kinds[n[0]])) for n in names)
    refs = tuple(StreamRef(alias, alias, window_us) for alias in "ab")
    half = rows.num_rows // 2
    files = {alias: [rows.slice(0, half), rows.slice(half)] for alias in "ab"}
    query = Query("", refs, equal([["k"], ["k"]]), tuple(output))
    return RandomJoin(PAIR.format(window), query, 10**9, files, (2, 2), 16)


@pytest.mark.spark
@pytest.mark.parametrize("start", [SPRING, AUTUMN], ids=["spring", "autumn"])
@pytest.mark.parametrize("kind", [NTZ, TIME], ids=["timestamp_ntz", "timestamp"])
def test_hours_that_clocks_skip_or_repeat_are_as_long_as_any_other(
    spark: SparkSession, tmp_path: Path, start: dt.datetime, kind: pa.DataType
) -> None:
    start = start.replace(tzinfo=dt.UTC if kind.tz else None)
    times = [start + dt.timedelta(minutes=20 * n) for n in range(-20, 20)]
    rows = pa.table({"k": [1] * 40, "v": range(40), "ts": pa.array(times, kind)})
    join = pair_of(rows, "1 HOUR", 3_600_000_000)
    road = Road(join, tmp_path, "frames", "memory", in_zone(spark, NEW_YORK))
    road.add_files(0)
    road.travel(2)
    road.check()
    assert road.results.total() == 40 * 7 - 2 * (3 + 2 + 1)


@pytest.mark.spark
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_nan_equals_any_nan_and_minus_zero_equals_zero(
    spark: SparkSession, tmp_path: Path, kind: type[np.floating[Any]]
) -> None:
    bits = {np.float32: np.uint32, np.float64: np.uint64}[kind]
    nan = int(kind("nan").view(bits))
    nans = np.array([nan, nan | 1, nan + (1 << (8 * kind().nbytes - 1))], bits).view(kind)
    keys = np.concatenate([nans, np.array([0.0, -0.0, 1.5, np.inf, -np.inf], kind)])
    times = pa.array([SPRING.replace(tzinfo=dt.UTC)] * len(keys), TIME)
    join = pair_of(pa.table({"k": keys, "v": range(len(keys)), "ts": times}), "1 SECOND", 10**6)
    road = Road(join, tmp_path, "parquet", "memory", spark)
    road.add_files(0)
    road.travel(3)
    a, b = (spark.read.parquet(str(tmp_path / name)) for name in "ab")
    of_spark = a.selectExpr("k", "v AS va").join(b.selectExpr("k", "v AS vb"), "k").collect()
    found = Counter(row[:2] for row in road.results.elements())
    assert found == Counter((row["va"], row["vb"]) for row in of_spark)
    assert found.total() == 3 * 3 + 2 * 2 + 1 + 1 + 1


@pytest.mark.spark
@pytest.mark.parametrize("kind", [NTZ, TIME], ids=["timestamp_ntz", "timestamp"])
def test_times_that_no_calendar_holds_are_counted_apart(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType
) -> None:
    times = pa.array([0, 1, -(2**63), 2**63 - 1, -(2**63) + 1, None], pa.int64()).view(kind)
    join = pair_of(pa.table({"k": [1] * 6, "v": range(6), "ts": times}), "1 SECOND", 10**6)
    road = Road(join, tmp_path, "parquet", "memory", spark)
    road.add_files(0)
    road.travel(1)
    progress = road.runs[0].progress
    assert (progress.null_rows, progress.out_of_range_rows) == (2 * 1, 2 * 3)
    assert sorted(row[:2] for row in road.results) == [(0, 0), (0, 1), (1, 0), (1, 1)]


WIDTHS: dict[str, tuple[list[pa.DataType], list[Any]]] = {
    "integers": (
        [pa.int16(), pa.int32(), pa.int64()],
        [0, -1, 7, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**40, None],
    ),
    "decimals": (
        [pa.decimal128(6, 2), pa.decimal128(9, 0), pa.decimal128(20, 4)],
        [decimal.Decimal(text) for text in ("0", "-1", "12.5", "9999", "99999", "0.0001")],
    ),
}


@pytest.mark.spark
@pytest.mark.parametrize("family", WIDTHS)
def test_keys_of_different_widths_join_as_in_spark_and_duckdb(
    spark: SparkSession, tmp_path: Path, family: str
) -> None:
    kinds, values = WIDTHS[family]
    tables = {}
    for name, kind in zip("abc", kinds, strict=True):
        keys = pa.array([value for value in values if _fits(value, kind)], kind)
        times = pa.array([SPRING.replace(tzinfo=dt.UTC)] * len(keys), TIME)
        tables[name] = pa.table({"k": keys, "v": pa.array(range(len(keys))), "ts": times})
        (tmp_path / name).mkdir()
        pq.write_table(tables[name], tmp_path / name / "0.parquet")
    select = "SELECT a.k AS ak, b.k AS bk, c.k AS ck, a.v AS av, b.v AS bv, c.v AS cv FROM "
    where = "WHERE a.k = b.k AND b.k = c.k"
    text = f"{select} a [RANGE 1 DAY], b [RANGE 1 DAY], c [RANGE 1 DAY] {where}"
    folders = {name: braid.files(tmp_path / name) for name in "abc"}
    sink = braid.sinks.memory()
    bound = braid.query(text, event_time="ts", **folders)
    bound.start(checkpoint=tmp_path / "checkpoint", sink=sink, workers=3).await_termination()
    found = sink.table()
    assert found.schema.types[:3] == kinds
    for name in "abc":
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    expected = spark.sql(f"{select} a, b, c {where}").toArrow()
    assert counted(found) == counted(expected)
    with duckdb.connect() as db:
        for name, table in tables.items():
            db.register(name, table)
        answer = db.sql(f"{select} a, b, c {where}").to_arrow_table()
    assert counted(found) == counted(answer)
    assert found.num_rows > 1


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        return value is None or pa.scalar(value, kind).as_py() == value
    except (pa.ArrowInvalid, OverflowError):
        return False
