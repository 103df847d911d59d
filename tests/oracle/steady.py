"""Streams of steady rates with uniform keys, joined by the engine's workers by the second."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid import JoinGraph, cql
from braid.model.expression import Column
from braid.plan.join_plan import make_plan
from tests.driven import Driven

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from braid.plan.join_plan import JoinPlan

TS = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Steady:
    """Streams with their keys and rates, and how many values each key has."""

    keys: dict[str, list[str]]
    values: dict[str, int]
    rates: dict[str, int]
    where: str

    def plan(
        self, windows: dict[str, int], chosen: str, select: str = "a.x", slide: str = ""
    ) -> JoinPlan:
        """How the engine joins them, over windows in seconds."""
        types = {
            Column(number, field.name): field.type
            for number, schema in enumerate(self._schemas.values())
            for field in schema
        }
        query = cql.bind(self.query(windows, select, slide), self._schemas, event_time="ts")
        return make_plan(query, types, "ts", groups=4, lateness_us=0, plans=[chosen])

    def query(self, windows: dict[str, int], select: str = "a.x", slide: str = "") -> str:
        """The join as a text."""
        froms = (f"{name} [RANGE {windows[name]} SECONDS{slide}]" for name in self.keys)
        return f"SELECT {select} FROM {', '.join(froms)} WHERE {self.where}"

    def graph(self, windows: dict[str, int]) -> JoinGraph:
        """What optimizers would have to know, in seconds."""
        sharing = {
            key: [name for name, keys in self.keys.items() if key in keys]
            for key in self.values
        }
        selectivity = {
            pair: 1 / self.values[key]
            for key, streams in sharing.items()
            for pair in combinations(streams, 2)
        }
        return JoinGraph(self.rates, selectivity, windows, keys=list(sharing.values()))

    @property
    def _schemas(self) -> dict[str, pa.Schema]:
        return {
            name: pa.schema([*((key, pa.int64()) for key in keys), ("ts", TS)])
            for name, keys in self.keys.items()
        }

    def run(
        self, plan: JoinPlan, folder: Path, seconds: int, workers: int = 1
    ) -> Iterator[Driven]:
        """The engine after each second, which is a batch."""
        engine = Driven(plan, folder, workers)
        for rows in self.rows(seconds):
            engine.batch(dict(enumerate(rows.values())))
            yield engine
        engine.checkpoint.close()

    def rows(self, seconds: int) -> Iterator[dict[str, pa.Table]]:
        """What comes in each second, by stream."""
        random = np.random.default_rng(1)
        for second in range(seconds):
            yield {
                name: self._rows(random, schema, self.rates[name], second)
                for name, schema in self._schemas.items()
            }

    def _rows(
        self, random: np.random.Generator, schema: pa.Schema, rate: int, second: int
    ) -> pa.Table:
        at = np.sort(random.integers(second * 1_000_000, (second + 1) * 1_000_000, rate))
        keys = {n: random.integers(0, self.values[n], rate) for n in schema.names if n != "ts"}
        return pa.table({**keys, "ts": pa.array(at).cast(TS)}, schema=schema)


CHAIN = Steady(
    keys={"a": ["x"], "b": ["x", "y"], "c": ["y", "z"], "d": ["z"]},
    values={"x": 400, "y": 300, "z": 100},
    rates={"a": 60, "b": 40, "c": 50, "d": 30},
    where="a.x = b.x AND b.y = c.y AND c.z = d.z",
)
CLIQUE = Steady(
    keys={name: ["x"] for name in "abcd"},
    values={"x": 100},
    rates={"a": 60, "b": 40, "c": 50, "d": 30},
    where="a.x = b.x AND b.x = c.x AND c.x = d.x",
)
