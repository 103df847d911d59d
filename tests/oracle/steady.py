"""Streams of steady rates with uniform keys, joined by the engine's workers by the second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid import cql
from braid.join.plan import make_plan
from braid.model.expression import Column
from tests.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from braid.join.plan import JoinPlan

TS = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Steady:
    """Streams with their keys and rates, and how many values each key has."""

    keys: dict[str, list[str]]
    values: dict[str, int]
    rates: dict[str, int]
    where: str

    def plan(self, windows: dict[str, int], chosen: str) -> JoinPlan:
        """How the engine joins them, over windows in seconds."""
        froms = ", ".join(f"{name} [RANGE {windows[name]} SECONDS]" for name in self.keys)
        text = f"SELECT a.x FROM {froms} WHERE {self.where}"
        types = {
            Column(number, field.name): field.type
            for number, schema in enumerate(self._schemas.values())
            for field in schema
        }
        query = cql.bind(text, self._schemas, event_time="ts")
        return make_plan(query, types, "ts", groups=4, lateness_us=0, plans=[chosen])

    @property
    def _schemas(self) -> dict[str, pa.Schema]:
        return {
            name: pa.schema([*((key, pa.int64()) for key in keys), ("ts", TS)])
            for name, keys in self.keys.items()
        }

    def run(self, plan: JoinPlan, folder: Path, seconds: int) -> Iterator[Engine]:
        """The engine after each second, which is a batch."""
        random = np.random.default_rng(1)
        engine = Engine(plan, folder, workers=1)
        for second in range(seconds):
            engine.batch(
                {
                    number: self._rows(random, schema, self.rates[name], second)
                    for number, (name, schema) in enumerate(self._schemas.items())
                }
            )
            yield engine
        engine.checkpoint.close()

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
