"""Queries to run while processes are killed, their input, and what each batch must publish.

That is DuckDB's answer over all rows at once. Which batch is to show a result follows from the
input too: one that comes too early, too late or in two halves is as wrong as a lost one.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid import cql
from braid.model.query import WINDOW_END
from braid.plan.lay_rounds import lay_rounds
from braid.plan.rounds import Shape
from braid.plan.tree import default_tree, parse_tree
from tests.oracle.answers import counted, oracle, prepared
from tests.oracle.values import EPOCH, TIME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from braid.model.query import Query

STREAMS = ("a", "b", "c")
SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64()), ("ts", TIME)])
BATCH_S = 10  # so that rows of a batch meet those of two or three batches before it
LATENESS_S = 2

_US = dt.timedelta(microseconds=1)
_ORIGIN = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NUMBERS = 1_000_000  # row i of batch n has v = n * this + i
_FIRST_LATE = 900_000  # rows from this i on come too late, and must not join
_FIRST_AHEAD = 950_000  # these from too far ahead; they are kept with the late ones
_AHEAD_S = 200 * 365 * 86_400

Published = dict[int, Counter[tuple[Any, ...]]]
"""By batch, the rows that it shows."""


@dataclass(frozen=True)
class Workload:
    """A query over the three streams, and the plan to run it by.

    A result with a `window_end` is shown when that moment is closed, any other with the latest
    of its rows; so it names them, as `va`, `vb` and `vc`. With `odd_rows`, there are some of a
    far future, and some whose j is 0, which the query cannot compute an expression for.
    """

    name: str
    query: str
    plan: str | None = None
    odd_rows: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """What the command says of its rows."""
        return ("--max-ahead", "1 hour", "--bad-rows", "keep") if self.odd_rows else ()

    @cached_property
    def bound(self) -> Query:
        return cql.bind(self.query, dict.fromkeys(STREAMS, SCHEMA), event_time="ts")

    @property
    def columns(self) -> list[str]:
        return [output.name for output in self.bound.output]

    @property
    def waits(self) -> bool:
        """Whether results wait until the watermark has passed them."""
        return WINDOW_END in self.columns

    @property
    def rounds(self) -> int:
        """How many shuffles a batch has."""
        tree = parse_tree(self.plan, STREAMS) if self.plan else default_tree(self.bound)
        return len(lay_rounds(self.bound, [Shape(tree, {})], "ts").rounds)


ONE_KEY = Workload(
    "one key",
    """\
SELECT a.v AS va, b.v AS vb, c.v AS vc, a.k, b.ts
FROM a [RANGE 25 SECONDS], b [RANGE 20 SECONDS], c [RANGE 15 SECONDS]
WHERE a.k = b.k AND b.k = c.k""",
)
_CHAIN = """\
SELECT a.v AS va, b.v AS vb, c.v AS vc, c.j, a.ts, b.v - c.v AS apart
FROM a [RANGE 25 SECONDS], b [RANGE 20 SECONDS], c [RANGE 15 SECONDS]
WHERE a.k = b.k AND b.j = c.j AND b.v % 5 <> 1 AND (a.v + c.v) % 3 <> 0"""
TREE = Workload("two keys, a tree", _CHAIN)
FLAT = Workload("two keys, one join", _CHAIN, plan="(a b c)")
GROUPS = Workload(
    "groups",
    """\
SELECT a.k % 7 AS part, count(*) AS n, sum(a.v) AS total, max(b.v + c.v) AS top, window_end
FROM a [RANGE 25 SECONDS SLIDE 5 SECONDS], b [RANGE 20 SECONDS], c [RANGE 15 SECONDS]
WHERE a.k = b.k AND b.j = c.j AND b.v % 5 <> 1 AND (a.v + c.v) % 3 <> 0
GROUP BY a.k % 7""",
)
HISTORY = Workload(
    "a history",
    """\
SELECT a.v AS va, b.v AS vb, c.v AS vc, greatest(a.ts, b.ts, c.ts) AS window_end
FROM a [PARTITION BY k ROWS 2], b [RANGE 20 SECONDS], c [RANGE 15 SECONDS]
WHERE a.k = b.k AND b.j = c.j AND a.v % 5 <> 1""",
)
ODD = Workload(
    "odd rows",
    f"{_CHAIN} AND 12 / a.j > 0 AND 12 / b.j > 0 AND 12 / c.j > 0",
    odd_rows=True,
)
WORKLOADS = (ONE_KEY, TREE, FLAT, GROUPS, HISTORY, ODD)


@dataclass(frozen=True)
class Input:
    """Rows for the three streams, made from a seed; so many of each stream in each batch."""

    seed: int
    batches: int
    rows: int
    odd_rows: bool = field(default=False, kw_only=True)

    def table(self, stream: str, number: int) -> pa.Table:
        """Rows in some disorder, and in later batches a few of a time long gone."""
        draw = np.random.default_rng((self.seed, STREAMS.index(stream), number))
        at_s = np.sort(draw.uniform(0, BATCH_S, self.rows)) + number * BATCH_S
        at_s -= draw.uniform(0, LATENESS_S, self.rows) * (draw.random(self.rows) < 0.5)
        at_s, v = at_s.clip(min=0), number * _NUMBERS + np.arange(self.rows)
        if number >= 2:
            at_s = np.append(at_s, draw.uniform(0, BATCH_S - LATENESS_S, 5))
            v = np.append(v, number * _NUMBERS + _FIRST_LATE + np.arange(5))
        # Two rows a key and window, so that most keys need rows of several batches.
        k, j = draw.integers(0, 2 * self.rows, (2, len(v)))
        if self.odd_rows:
            at_s = np.append(at_s, at_s[:3] + _AHEAD_S)
            v = np.append(v, number * _NUMBERS + _FIRST_AHEAD + np.arange(3))
            k, j = np.append(k, k[:3]), np.append(j, j[:3])
            j = np.where(v % 50, j.clip(min=1), 0)  # no other condition drops these
        ts = (EPOCH - _ORIGIN) // _US + (at_s * 1e6).astype(np.int64)
        return pa.table({"k": k, "j": j, "v": v, "ts": pa.array(ts, TIME)}, SCHEMA)

    def expected(self, workload: Workload) -> Published:
        """The results of each batch; behind the last, of the one that closes what is left."""
        query, tables = workload.bound, [self._whole(stream) for stream in STREAMS]
        on_time = [table.filter(~_is_late(table) & ~self._is_bad(table)) for table in tables]
        finalize_up_to_us = self._closing_us(query, on_time)
        answer = oracle(query, on_time, "ts", closed_us=finalize_up_to_us[-1])
        published: Published = {n: Counter() for n in range(self.batches + workload.waits)}
        for row, count in counted(answer).items():
            named = dict(zip(workload.columns, row, strict=True))
            if workload.waits:
                batch = bisect_left(finalize_up_to_us, (named[WINDOW_END] - _ORIGIN) // _US)
            else:
                batch = max(named["va"], named["vb"], named["vc"]) // _NUMBERS
            published[batch][row] = count
        return published

    def expected_late(self, workload: Workload) -> Published:
        """The rows that come late, as (stream, v); those that the query filters out do not."""
        refs = zip(STREAMS, workload.bound.streams, strict=True)
        sound = ((stream, ref, self._whole(stream)) for stream, ref in refs)
        tables = {
            s: prepared(ref, table.filter(~self._is_bad(table))) for s, ref, table in sound
        }
        return _by_batch({s: table.filter(_is_late(table)) for s, table in tables.items()})

    def expected_bad(self) -> Published:
        """The bad rows, as (stream, v)."""
        tables = {stream: self._whole(stream) for stream in STREAMS}
        return _by_batch({s: table.filter(self._is_bad(table)) for s, table in tables.items()})

    def _is_bad(self, table: pa.Table) -> np.ndarray:
        return self.odd_rows & (table["j"].to_numpy() == 0)

    def _whole(self, stream: str) -> pa.Table:
        return pa.concat_tables(self.table(stream, number) for number in range(self.batches))

    def _closing_us(self, query: Query, on_time: list[pa.Table]) -> list[int]:
        """By batch, the last moment that it closes: what the batches before it have passed.

        The batch behind the last closes groups up to the watermark, and all of a history.
        """
        newest_us = []
        for ref, table in zip(query.streams, on_time, strict=True):
            rows = prepared(ref, table)
            batch = pc.divide(rows["v"], _NUMBERS).to_numpy()
            newest = np.full(self.batches, np.iinfo(np.int64).min // 2)
            np.maximum.at(newest, batch, rows["ts"].cast(pa.int64()).to_numpy())
            newest_us.append(np.maximum.accumulate(newest))
        reached = np.minimum.reduce(newest_us) - LATENESS_S * 1_000_000
        last = reached[-1] if query.grouping else np.max(newest_us)
        return [-(2**62), *(int(moment) - 1 for moment in reached[:-1]), int(last)]


def _is_late(table: pa.Table) -> np.ndarray:
    return table["v"].to_numpy() % _NUMBERS >= _FIRST_LATE


def _by_batch(tables: Mapping[str, pa.Table]) -> Published:
    """The rows of some streams as (stream, v)."""
    published: Published = {}
    for stream, table in tables.items():
        for v in table["v"].to_pylist():
            published.setdefault(v // _NUMBERS, Counter())[stream, v] = 1
    return published
