"""Finding and fetching matches, against loops that try everything."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.worker.gather import ROW_BITS, gather
from braid.worker.kernel import expand, locate

LAW = settings(deadline=None)
hashes = st.sampled_from([0, 1, 2, 5, 2**63, 2**64 - 1])
times = st.integers(-5, 20)
stored = st.lists(st.tuples(hashes, times), max_size=40).map(sorted)
probes = st.lists(st.tuples(hashes, times, times), max_size=25).map(sorted)


def columns(rows: list[tuple[int, ...]], count: int) -> list[np.ndarray]:
    kinds = [np.uint64, np.int64, np.int64]
    return [np.array([row[i] for row in rows], kinds[i]) for i in range(count)]


def located(run: list[tuple[int, int]], asked: list[tuple[int, int, int]]) -> np.ndarray:
    """Per probe: where its matches start, and how many there are."""
    answer = np.full((2, len(asked)), -1, np.int64)
    locate(*columns(run, 2), *columns(asked, 3), *answer)
    return answer


@settings(LAW)
@given(stored, probes)
def test_a_probe_finds_the_rows_of_its_key_within_its_bounds_and_no_others(
    run: list[tuple[int, int]], asked: list[tuple[int, int, int]]
) -> None:
    starts, counts = located(run, asked)
    for probe, (key, oldest, newest) in enumerate(asked):
        found = list(range(starts[probe], starts[probe] + counts[probe]))
        matches = [
            row for row, (k, at) in enumerate(run) if k == key and oldest <= at <= newest
        ]
        assert found == matches or (not matches and counts[probe] <= 0)


def test_bounds_the_wrong_way_round_find_nothing() -> None:
    _, counts = located([(1, 5), (1, 6), (1, 7)], [(1, 7, 5), (1, 6, 6)])
    assert counts.tolist() == [0, 1]


def test_a_probe_far_behind_the_last_match_is_found_by_galloping() -> None:
    run = [(h, 0) for h in range(10_000)]
    asked = [(h, 0, 0) for h in (0, 1, 5000, 9998, 9999, 10_000)]
    starts, counts = located(run, asked)
    assert counts.tolist() == [1, 1, 1, 1, 1, 0]
    assert starts[:5].tolist() == [0, 1, 5000, 9998, 9999]


@settings(LAW)
@given(st.data())
def test_expanding_lists_all_matches_by_probe(data: st.DataObject) -> None:
    runs, asked = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 6))
    shape = st.lists(st.integers(0, 3), min_size=runs * asked, max_size=runs * asked)
    starts = np.array(data.draw(shape), np.int64).reshape(runs, asked)
    counts = np.array(data.draw(shape), np.int64).reshape(runs, asked)
    of_probe, rows = expand(starts, counts)
    everything = [
        (probe, (run << ROW_BITS) + starts[run, probe] + i)
        for probe in range(asked)
        for run in range(runs)
        for i in range(counts[run, probe])
    ]
    assert list(zip(of_probe.tolist(), rows.tolist(), strict=True)) == everything


COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [1, -128, 127]),
    (pa.int16(), [1, -2]),
    (pa.float32(), [0.5, -0.0]),
    (pa.int64(), [2**63 - 1, -(2**63), 0]),
    (pa.timestamp("us", "UTC"), [0, 1]),
    (pa.bool_(), [True, False]),
    (pa.string(), ["", "ab", "ß"]),
    (pa.decimal128(10, 3), [Decimal("1.234"), Decimal("-0.001")]),
    (pa.list_(pa.int32()), [[], [1, 2]]),
    (pa.struct([("x", pa.int32())]), [{"x": 1}, {"x": None}]),
]


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(("kind", "values"), COLUMNS, ids=[str(kind) for kind, _ in COLUMNS])
@settings(LAW, max_examples=20)
@given(data=st.data())
def test_gathering_fetches_each_value_from_its_run(
    kind: pa.DataType, values: list[Any], nulls: bool, data: st.DataObject
) -> None:
    cells = st.sampled_from(values + [None] * nulls)
    runs = data.draw(st.lists(st.lists(cells, max_size=5), min_size=1, max_size=3))
    # As a slice, which a group of a run is.
    chunks = [pa.array([values[0], *run, values[0]], kind)[1:-1] for run in runs]
    places = [(run, row) for run, chunk in enumerate(chunks) for row in range(len(chunk))]
    wanted = data.draw(st.lists(st.sampled_from(places), max_size=12)) if places else []
    rows = np.array([run << ROW_BITS | row for run, row in wanted], np.int64)
    fetched = gather(chunks, rows)
    assert fetched.type == kind
    assert fetched.to_pylist() == [chunks[run][row].as_py() for run, row in wanted]
