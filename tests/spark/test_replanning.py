"""Queries that find better plans by themselves while they run, through Spark."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import braid
from braid import cql
from braid.model.errors import BraidError
from braid.optimize.timing.memory_driven import MemoryDriven
from tests.oracle.answers import counted, oracle
from tests.oracle.uneven import APART, QUERY, STREAMS, SWITCHING
from tests.spark.folders import date, stream_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from braid.optimize.timing.statistics import Situation
    from tests.oracle.uneven import Uneven

pytestmark = pytest.mark.spark

KEYS = {"a": ("x",), "b": ("x", "y"), "c": ("y",)}
RATE, SECONDS, SWITCH_S, WINDOW_S = 200, 24, 8, 3
FEW, MANY = 10, 1000
TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Switching:
    """Streams whose keys trade places: first `x` has many values and `y` few, then not."""

    folder: Path
    also: str = ""
    switch_s: int = SWITCH_S

    @property
    def query(self) -> str:
        streams = ", ".join(f"{name} [RANGE {WINDOW_S} SECONDS]" for name in KEYS)
        keys = f"a.x = b.x AND b.y = c.y{self.also}"
        return f"SELECT a.v AS va, b.v AS vb, c.v AS vc FROM {streams} WHERE {keys}"

    def rows(self, stream: str, second: int) -> pa.Table:
        draw = np.random.default_rng((sorted(KEYS).index(stream), second))
        at = np.sort(draw.integers(0, 1_000_000, RATE)) + second * 1_000_000
        columns: dict[str, Any] = {"ts": pa.array(at, TIME), "v": draw.integers(0, 40, RATE)}
        for key in KEYS[stream]:
            is_wide = (key == "x") == (second < self.switch_s)
            columns[key] = draw.integers(0, MANY if is_wide else FEW, RATE)
        return pa.table(columns)

    def run(self, **options: Any) -> list[dict[str, Any]]:
        whole = {name: [self.rows(name, second) for second in range(SECONDS)] for name in KEYS}
        return run_rightly(self.folder, self.query, whole, plan="((a b) c)", **options)


def run_rightly(
    folder: Path,
    query: str,
    rows: dict[str, list[pa.Table]],
    frames: SparkSession | None = None,
    *,
    follow: bool = False,
    **options: Any,
) -> list[dict[str, Any]]:
    """Read a second a batch to the end; the events, once the results are known to be right.

    DuckDB has all rows at once. A Spark session reads the files as streaming DataFrames. A run
    that follows its folders is stopped when it has read all.
    """
    for stream, tables in rows.items():
        (folder / stream).mkdir()
        for second, table in enumerate(tables):
            path = folder / stream / f"{second:04}.parquet"
            pq.write_table(table, path)
            date(path, second)
    streams = {
        name: stream_of(folder / name, frames, from_arrow_schema(tables[0].schema))
        for name, tables in rows.items()
    }
    run = braid.query(query, event_time="ts", **streams).start(
        checkpoint=folder / "checkpoint",
        sink=braid.sinks.parquet(folder / "out"),
        workers=2,
        groups=16,
        available_now=not follow,
        follow=follow,
        **options,
    )
    total = sum(table.num_rows for tables in rows.values() for table in tables)
    while not run.await_termination(0.2):
        if follow and run.progress.input_rows == total:
            run.stop()
    paths = (folder / "out").glob("__batch=*/*.parquet")
    found = sum((counted(pq.ParquetFile(path).read()) for path in paths), Counter())
    whole = {name: pa.concat_tables(tables) for name, tables in rows.items()}
    schemas = {name: table.schema for name, table in whole.items()}
    bound = cql.bind(query, schemas, event_time="ts")
    assert found == counted(oracle(bound, list(whole.values()), "ts"))
    return run.events()


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == kind]


@pytest.mark.parametrize("over", ["files", "streaming DataFrames"])
def test_a_plan_is_left_when_selectivities_trade_places(
    spark: SparkSession, tmp_path: Path, over: str
) -> None:
    # However slow the machine is, a few batches make the change.
    events = Switching(tmp_path).run(
        optimizer="exhaustive",
        migration_pause="1 minute",
        frames=None if over == "files" else spark,
    )
    chosen = [event for event in of_kind(events, "plan") if event["new"] is not None]
    assert chosen[0]["batch"] >= SWITCH_S, "it was the best until then"
    last = chosen[-1]
    assert last["new"] == "(a (b c))"
    assert last["numbers"]["new_cpu"] < 0.8 * last["numbers"]["cpu"]
    assert "has changed" in last["reason"]
    assert {(e["stream"], e["certainty"]) for e in last["rates"]} == {
        (s, "exact") for s in KEYS
    }
    ends = [e for e in of_kind(events, "migrate") if e["step"] == "end"]
    assert ends[-1]["new"] == "(a (b c))"
    batches = {event["batch"]: event for event in of_kind(events, "batch")}
    before, after = (batches[number]["states"] for number in (last["batch"], max(batches)))
    rows = [sum(state["rows"] for state in states) for states in (before, after)]
    assert rows[1] < rows[0] / 2


@pytest.mark.parametrize(
    ("trigger", "memory", "reason"),
    [
        ("memory interval_ms=1000", "100KB", "memory is near its budget"),
        ("refined interval_ms=1000", None, "have risen steadily"),
    ],
)
def test_a_plan_is_left_when_its_state_grows(
    spark: SparkSession, tmp_path: Path, trigger: str, memory: str | None, reason: str
) -> None:
    events = Switching(tmp_path).run(
        optimizer="bjtree-init", replan_when=trigger, memory=memory, migration_pause="1 minute"
    )
    chosen = [event for event in of_kind(events, "plan") if event["new"] is not None]
    first = chosen[0]
    assert first["batch"] >= SWITCH_S, "it was good enough until then"
    assert reason in first["reason"]
    assert first["numbers"]["new_memory"] < first["numbers"]["memory"]
    ends = [e for e in of_kind(events, "migrate") if e["step"] == "end"]
    assert "(a b)" not in ends[-1]["new"], "which is what had grown"


@pytest.mark.parametrize("over", ["files", "followed files", "streaming DataFrames"])
def test_the_rows_that_nobody_has_read_yet_are_known(
    spark: SparkSession, tmp_path: Path, over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    decide = MemoryDriven.decide

    def watched(trigger: MemoryDriven, situation: Situation) -> Any:
        seen.append(situation.load.unread_rows.value or 0.0)
        return decide(trigger, situation)

    monkeypatch.setattr(MemoryDriven, "decide", watched)
    frames = spark if over == "streaming DataFrames" else None
    follow = over == "followed files"
    asked = {"optimizer": "exhaustive", "replan_when": "memory"}
    Switching(tmp_path).run(**asked, frames=frames, follow=follow)
    assert len(seen) > SECONDS / 2
    if follow:
        left = [3 * RATE * (SECONDS - 1 - batch) for batch in range(SECONDS)][-len(seen) :]
        assert seen == pytest.approx(left, rel=0.1)
    else:
        # A second of the streams takes less than a second. Spark's files are no rows, and files
        # that were there at the start do not say how fast others come.
        assert seen[-1] < 2 * 3 * RATE


def test_pairs_that_the_plan_does_not_join_are_sampled_on_the_side(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of the two keys that c is joined on, no probe tells which does what."""
    switching = Switching(tmp_path, also=" AND a.v = c.v", switch_s=16)
    events = switching.run(optimizer="mjoin-init", cpu=math.inf)
    first = of_kind(events, "plan")[0]
    assert first["batch"] < switching.switch_s
    known = {(e["stream"], e["other"]): e for e in first["selectivities"]}
    assert known["a", "b"]["certainty"] == "exact"
    assert known["b", "c"]["certainty"] == known["a", "c"]["certainty"] == "estimated"
    assert known["b", "c"]["selectivity"] == pytest.approx(1 / FEW, rel=0.2)
    assert known["a", "c"]["selectivity"] == pytest.approx(1 / 40, rel=0.2)
    assert [e for e in of_kind(events, "plan") if e["new"] is not None]


FIRST = "((a b) c)"


def plans_of_workers(
    streams: Uneven, folder: Path, seconds: int
) -> tuple[list[str], list[dict[str, Any]]]:
    """The plan that each of two workers has come to, and all changes of plan."""
    rows = {s: [streams.rows(s, second) for second in range(seconds)] for s in STREAMS}
    options = {"optimizer": "exhaustive", "migration_pause": "1 minute"}
    events = run_rightly(folder, QUERY, rows, plan=FIRST, **options)
    plans = [FIRST, FIRST]
    for end in (e for e in of_kind(events, "migrate") if e["step"] == "end"):
        for worker in end["workers"] or (0, 1):
            plans[worker] = end["new"]
    return plans, [event for event in of_kind(events, "plan") if event["new"] is not None]


def test_a_worker_whose_rows_differ_chooses_a_plan_of_its_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    plans, chosen = plans_of_workers(APART, tmp_path, 12)
    assert plans[0] != plans[1] != FIRST
    (last,) = [event for event in chosen if event["new"] == plans[1]]
    assert last["workers"] == (1,)
    assert last["numbers"]["new_cpu"] < 0.8 * last["numbers"]["cpu"]
    rates = [rate["rows_per_second"] for rate in last["rates"]]
    assert rates == pytest.approx(APART.rates(1, 0), rel=0.3), "of its own rows alone"


def test_what_switches_for_all_leaves_all_with_one_plan(
    spark: SparkSession, tmp_path: Path
) -> None:
    plans, chosen = plans_of_workers(SWITCHING, tmp_path, 22)
    assert plans[0] == plans[1] != FIRST
    assert sorted(e["workers"] for e in chosen if e["new"] == plans[0]) == [(0,), (1,)]


WINDOWS = "a [RANGE 1 SECONDS], b [RANGE 1 SECONDS]"


@pytest.mark.parametrize(
    ("froms", "options", "told"),
    [
        (WINDOWS, {"optimizer": "best"}, "unknown optimizer 'best'"),
        (WINDOWS, {"replan_when": "dat"}, "unknown replan_when 'dat'"),
        (WINDOWS, {"migration": "leap"}, "unknown way to change a plan 'leap'"),
        (WINDOWS, {"replan_when": "data treshold=1"}, "unknown parameter of data 'treshold'"),
        (WINDOWS, {"optimizer": "exhaustive", "replan_when": "data threshold=3"}, "threshold"),
        (
            "a [UNBOUNDED], b [RANGE 1 SECONDS]",
            {"optimizer": "mjoin-init"},
            "a window without end",
        ),
        (
            "a [PARTITION BY k ROWS 1], b [RANGE 1 SECONDS]",
            {"optimizer": "mjoin-init"},
            "a history",
        ),
    ],
)
def test_what_is_not_known_and_where_plans_cannot_change_is_refused(
    spark: SparkSession, tmp_path: Path, froms: str, options: dict[str, str], told: str
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    rows = {"k": [1], "v": [2], "ts": pa.array([0], TIME)}
    pq.write_table(pa.table(rows), folder / "0.parquet")
    text = f"SELECT a.v FROM {froms} WHERE a.k = b.k"
    ready = braid.query(text, event_time="ts", a=braid.files(folder), b=braid.files(folder))
    with pytest.raises(BraidError, match=told):
        ready.start(checkpoint=tmp_path / "c", sink=braid.sinks.memory(), **options)
    assert not (tmp_path / "c").exists()
