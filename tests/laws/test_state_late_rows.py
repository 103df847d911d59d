"""Which rows are late, by a model of a few lines; and what becomes of all the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.driven import Driven
from tests.oracle.answers import counted, oracle
from tests.unit.state.making import (
    STREAM,
    equal_join,
    generator,
    quick_folder,
    stream_rows,
)

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

LAW = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=80)
NULL_SHARE = 0.1


@dataclass
class Model:
    """A row is late if its time is below the watermark at the start of its batch.

    The watermark is the slowest stream's newest time less the lateness, and never falls.
    """

    streams: int
    lateness_us: int
    newest_us: dict[int, int] = field(default_factory=dict)
    watermark_us: int | None = None

    def split(self, batch: dict[int, pa.Table]) -> tuple[dict[int, list], dict[int, list]]:
        """Rows in time and late rows of each stream; rows with a null are neither."""
        in_time: dict[int, list] = {stream: [] for stream in batch}
        late: dict[int, list] = {stream: [] for stream in batch}
        for stream, rows in batch.items():
            for row in rows.to_pylist():
                if row["k"] is None or row["ts"] is None:
                    continue
                is_late = self.watermark_us is not None and at(row) < self.watermark_us
                (late if is_late else in_time)[stream].append(row)
        self._advance(in_time)
        return in_time, late

    def _advance(self, in_time: dict[int, list]) -> None:
        for stream, rows in in_time.items():
            times = [at(row) for row in rows] + [self.newest_us.get(stream, -(2**60))]
            if rows:
                self.newest_us[stream] = max(times)
        if len(self.newest_us) == self.streams:
            reached = min(self.newest_us.values()) - self.lateness_us
            self.watermark_us = max(reached, self.watermark_us or reached)


def at(row: dict[str, Any]) -> int:
    return int(pa.scalar(row["ts"], STREAM.field("ts").type).value)


def with_nulls(random: np.random.Generator, rows: pa.Table) -> pa.Table:
    columns = {
        name: pa.array(
            [None if random.random() < NULL_SHARE else cell.as_py() for cell in rows[name]],
            STREAM.field(name).type,
        )
        for name in ("k", "ts")
    }
    return pa.table({**columns, "v": rows["v"]}, schema=STREAM)


@settings(LAW)
@given(
    streams=st.integers(2, 3),
    workers=st.integers(1, 3),
    window_ms=st.sampled_from([0, 50, 200, 1000]),
    lateness_ms=st.sampled_from([0, 40, 150]),
    disorder_ms=st.sampled_from([0, 100, 600]),
    batches=st.integers(1, 7),
    restarts=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_late_rows_are_dropped_counted_and_kept_and_all_others_joined(
    streams: int,
    workers: int,
    window_ms: int,
    lateness_ms: int,
    disorder_ms: int,
    batches: int,
    restarts: bool,
    seed: int,
) -> None:
    random = generator(seed, streams, workers, window_ms, lateness_ms, disorder_ms, batches)
    plan = equal_join(streams, window_ms * 1000, lateness_us=lateness_ms * 1000)
    model = Model(streams, plan.lateness_us)
    joined: dict[int, list] = {stream: [] for stream in plan.streams}
    late: dict[int, list] = {stream: [] for stream in plan.streams}
    with quick_folder() as folder:
        engine = Driven(plan, folder, workers, keep_late=True)
        for number in range(batches):
            if restarts and random.random() < 0.3:
                engine = engine.restart(int(random.integers(1, 4)))
            batch = {
                stream: with_nulls(random, some_rows(random, number, disorder_ms))
                for stream in plan.streams
            }
            in_time, behind = model.split(batch)
            engine.batch(batch)
            for stream in plan.streams:
                joined[stream] += in_time[stream]
                late[stream] += behind[stream]
            assert sum(r.late_rows for r in engine.reports) == total(behind)
            assert engine.commit.watermark_us == model.watermark_us
            counted_rows = sum(r.input_rows for r in engine.reports)
            assert counted_rows == sum(rows.num_rows for rows in batch.values())
        rows = tuple(pa.Table.from_pylist(joined[s], STREAM) for s in plan.streams)
        assert counted(engine.all_results()) == counted(oracle(plan.query, rows, "ts"))
        for stream in plan.streams:
            assert kept(folder, f"s{stream}") == as_multiset(late[stream])
        engine.checkpoint.close()


def some_rows(random: np.random.Generator, number: int, disorder_ms: int) -> pa.Table:
    newest = number * 100 + 100
    return stream_rows(
        random, int(random.integers(0, 15)), newest - 100 - disorder_ms, newest, 4
    )


def total(rows: dict[int, list]) -> int:
    return sum(map(len, rows.values()))


def kept(folder: Path, alias: str) -> Counter:
    """The late rows that the workers wrote down."""
    files = (folder / "late").glob(f"__batch=*/stream={alias}/*.parquet")
    return as_multiset([row for path in files for row in pq.read_table(path).to_pylist()])


def as_multiset(rows: list[dict[str, Any]]) -> Counter:
    return Counter((row["k"], at(row), row["v"]) for row in rows)
