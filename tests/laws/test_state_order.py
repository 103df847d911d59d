from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.state.order import merge_rows, sort_order
from tests.unit.state.making import run_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAW = settings(deadline=None)
few = st.sampled_from([0, 1, 2, 2**32, 2**63 - 1, 2**63, 2**64 - 1])
hashes = st.one_of(few, st.integers(0, 2**64 - 1))
times = st.one_of(st.integers(-3, 3), st.integers(-(2**57), 2**57))
rows = st.lists(st.tuples(hashes, times), max_size=60)


def expected(hashes: NDArray[np.uint64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.lexsort((times, hashes))


@settings(LAW)
@given(rows)
def test_sorting_agrees_with_lexsort_ties_and_all(rows: list[tuple[int, int]]) -> None:
    h = np.array([row[0] for row in rows], np.uint64)
    t = np.array([row[1] for row in rows], np.int64)
    assert np.array_equal(sort_order(h, t), expected(h, t))


@pytest.mark.parametrize("disorder", [0, 50, 100_000])
@pytest.mark.parametrize("keys", [1, 3, 1000, None])
def test_sorting_agrees_with_lexsort_for_frequent_keys_in_and_out_of_order(
    keys: int | None, disorder: int
) -> None:
    random = np.random.default_rng(7)
    count = 20_000
    h = random.integers(0, 2**64, keys or count, np.uint64)
    if keys:
        # The first keys are by far the most frequent ones.
        h = h[np.minimum(random.zipf(1.3, count) - 1, keys - 1)]
    t = np.arange(count) // 4 + random.integers(0, disorder + 1, count)
    assert np.array_equal(sort_order(h, t), expected(h, t))


def test_sorting_agrees_with_lexsort_where_neighbours_in_a_bucket_differ_in_hash() -> None:
    random = np.random.default_rng(8)
    h = np.concatenate(
        [random.integers(0, 500, 3000, np.uint64), np.array([2**64 - 1], np.uint64)]
    )
    t = random.integers(0, 10**6, len(h))[::-1].copy()
    assert np.array_equal(sort_order(h, t), expected(h, t))


@settings(LAW)
@given(st.lists(rows.filter(len), min_size=1, max_size=4))
def test_merging_runs_gives_the_run_of_all_their_rows(
    parts: list[list[tuple[int, int]]],
) -> None:
    runs = [run_rows(*zip(*part, strict=True)) for part in parts]
    merged = merge_rows(runs)
    together = [row for run in runs for row in run.to_pylist()]
    assert merged.to_pylist() == sorted(together, key=lambda r: (r["hash"], r["time"]))
