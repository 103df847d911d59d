"""The ladder over many batches, on real run files: few runs, bounded work, nothing lost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from braid.state import ladder as rules
from braid.state.horizon import NO_HORIZON, Horizon
from braid.state.log import LogFile
from braid.state.runs import DEADLINE, Ladder, SortedRun, times_of
from braid.state.upkeep import Upkeep, open_ladder
from tests.unit.state.making import generator, quick_folder, run_rows, store_in

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from braid.state.store import RunStore

LAW = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
NO_MORE_THAN = 1.6  # rows held, as a multiple of those that a future row may reach


@dataclass
class Stream:
    """One stream's state as it grows, with what each batch cost."""

    folder: Path
    store: RunStore
    window_us: int
    lateness_us: int
    ladder: Ladder = ()
    newest_us: int | None = None
    written_rows: list[int] = field(default_factory=list)

    @property
    def horizon(self) -> Horizon:
        if self.newest_us is None:
            return NO_HORIZON
        low_us = self.newest_us - self.lateness_us
        return Horizon(low_us - self.window_us, low_us)

    def insert(self, rows: pa.RecordBatch) -> None:
        opened = open_ladder(self.store, self.ladder, self.horizon)
        if rows.num_rows:
            self.newest_us = max(times_of(rows).max(), *self.newest_so_far())
        number = len(self.written_rows)
        log = LogFile(self.folder / "log" / f"{number}.log")
        before = {run.file for run in self.ladder}
        self.ladder = Upkeep(self.store, log, str(number)).insert(opened, rows, self.horizon)
        self.store.remove_others({run.file for run in self.ladder})
        fresh = [run.rows for run in self.ladder if run.file not in before]
        self.written_rows.append(sum(fresh))

    def newest_so_far(self) -> list[int]:
        return [-(2**60) if self.newest_us is None else self.newest_us]

    @property
    def rows(self) -> int:
        return sum(run.rows for run in self.ladder)

    def live_rows(self) -> int:
        opened = open_ladder(self.store, self.ladder, NO_HORIZON)
        time_us, low_us = self.horizon.time_us, self.horizon.low_us
        living = 0
        for rows in (pair.rows for pair in opened):
            is_young = times_of(rows) >= time_us
            if DEADLINE in rows.schema.names:
                is_young &= rows.column(DEADLINE).to_numpy() >= low_us
            living += int(is_young.sum())
        return living

    def live(self) -> list[dict[str, int]]:
        opened = open_ladder(self.store, self.ladder, NO_HORIZON)
        return self.reachable([row for pair in opened for row in pair.rows.to_pylist()])

    def reachable(self, rows: list[dict[str, int]]) -> list[dict[str, int]]:
        """The rows that are not older than a window, nor past their deadline."""
        time_us, low_us = self.horizon.time_us, self.horizon.low_us
        if time_us is None or low_us is None:
            return rows
        return [r for r in rows if r["time"] >= time_us and r.get(DEADLINE, low_us) >= low_us]


def steady_batch(
    random: np.random.Generator,
    number: int,
    rows: int,
    span_us: int,
    disorder_us: int,
    others: tuple[int, ...] = (),
) -> pa.RecordBatch:
    """Rows of a stream; or joined ones, each with one member that may be older by so much."""
    times = number * span_us + random.integers(0, span_us, rows)
    times -= random.integers(0, disorder_us + 1, rows)
    hashes = random.integers(0, 2**64, rows, np.uint64)
    if not others:
        return run_rows(hashes, times)
    ages = [random.integers(0, window_us + 1, rows) for window_us in others]
    ends = [times - age + window for age, window in zip(ages, others, strict=True)]
    return run_rows(hashes, times, np.minimum.reduce(ends))


@pytest.mark.parametrize("streams", [1, 2, 3])
@pytest.mark.parametrize("disorder", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("batches_per_window", [0.4, 1, 1.5, 3, 10, 60])
def test_dead_rows_stay_few_whatever_part_of_the_window_a_batch_spans(
    batches_per_window: float, disorder: float, streams: int
) -> None:
    random = np.random.default_rng(1)
    span_us, rows = 10_000, 150
    window_us = round(batches_per_window * span_us)
    disorder_us = round(disorder * window_us)
    with quick_folder() as folder:
        stream = Stream(folder, store_in(folder), window_us, disorder_us)
        for number in range(max(30, round(5 * batches_per_window))):
            others = (window_us,) * (streams - 1)
            stream.insert(steady_batch(random, number, rows, span_us, disorder_us, others))
            if number > 2 * batches_per_window + 2:
                assert stream.rows <= NO_MORE_THAN * stream.live_rows()


def test_runs_stay_few_and_rows_are_rewritten_seldom_over_many_batches() -> None:
    random = np.random.default_rng(2)
    batches, rows = 600, 20
    with quick_folder() as folder:
        stream = Stream(folder, store_in(folder), 150 * 1000, 0)
        most_runs = 0
        for number in range(batches):
            stream.insert(steady_batch(random, number, rows, 1000, 0))
            most_runs = max(most_runs, len(stream.ladder))
    doublings = math.log2(150)
    assert most_runs <= rules.SPAN_SHARE + doublings + 2
    assert sum(stream.written_rows) <= batches * rows * doublings


def test_state_without_a_watermark_grows_into_logarithmically_many_runs() -> None:
    random = np.random.default_rng(3)
    with quick_folder() as folder:
        stream = Stream(folder, store_in(folder), 2**56, 0)
        for number in range(1, 301):
            stream.insert(steady_batch(random, number, 5, 1000, 0))
            assert len(stream.ladder) <= math.log2(number) + 2
        assert stream.rows == 300 * 5


def test_no_batch_rewrites_more_rows_than_the_largest_merge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit, rows = 450, 20
    assert most_written(rows) > limit + rows, "the limit is one that would be passed"
    monkeypatch.setattr(rules, "LARGEST_MERGE_ROWS", limit)
    assert most_written(rows) <= limit + rows


def test_no_merge_puts_together_more_bytes_than_arrow_can() -> None:
    def run(length: int) -> SortedRun:
        return SortedRun("", "memory", length, "", 100, 0, 1, ())

    limit = rules.LARGEST_MERGE_BYTES
    assert 2 * limit <= 1 << 31
    assert rules.merge_from((run(limit // 2), run(limit // 2)), NO_HORIZON) == 0
    assert rules.merge_from((run(limit // 2), run(limit // 2 + 1)), NO_HORIZON) is None
    assert rules.merge_from((run(limit), run(limit // 2), run(limit // 4)), NO_HORIZON) == 1


def most_written(rows: int) -> int:
    random = np.random.default_rng(4)
    with quick_folder() as folder:
        stream = Stream(folder, store_in(folder), 300 * 1000, 100 * 1000)
        for number in range(400):
            stream.insert(steady_batch(random, number, rows, 1000, 100 * 1000))
    return max(stream.written_rows)


jumps = st.sampled_from([0, 1, 10, 300, 5000])
batch_sizes = st.sampled_from([0, 1, 2, 5, 40])


@settings(LAW)
@given(
    batches=st.lists(st.tuples(batch_sizes, jumps), min_size=1, max_size=25),
    window_us=st.sampled_from([0, 5, 100, 1000]),
    lateness_us=st.sampled_from([0, 50, 400]),
    is_joined=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_no_row_that_a_future_row_may_reach_is_ever_dropped(
    batches: list[tuple[int, int]],
    window_us: int,
    lateness_us: int,
    is_joined: bool,
    seed: int,
) -> None:
    random = generator(seed, len(batches), window_us, lateness_us, is_joined)
    clock = 0
    inserted: list[dict[str, int]] = []
    with quick_folder() as folder:
        stream = Stream(folder, store_in(folder), window_us, lateness_us)
        for count, jump in batches:
            clock += jump
            times = clock - random.integers(0, lateness_us + 1, count)
            hashes = random.integers(0, 2**64, count, np.uint64)
            deadlines = times + random.integers(0, window_us + 1, count) if is_joined else None
            rows = run_rows(hashes, times, deadlines)
            stream.insert(rows)
            inserted += rows.to_pylist()
            assert by_hash(stream.live()) == by_hash(stream.reachable(inserted))


def by_hash(rows: list[dict[str, int]]) -> list[tuple[int, ...]]:
    return sorted(tuple(row.values()) for row in rows)
