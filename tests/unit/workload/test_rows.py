from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from braid.model.errors import BraidError
from braid.workload import PartitionSpec, Phase, StreamSpec, WorkloadSpec, batches, rows, schema
from braid.workload.draw import value_counts

SECOND = 1_000_000
SPEC = WorkloadSpec((StreamSpec("a", 1000), StreamSpec("b", 1000)), seed=1)
GOLDEN = {
    "us": [121, 639, 2777],
    "k": [15307, 28252, 17966],
    "v": [1020201780, 2028214859, 1081594563],
}


def times_us(table):
    return table["ts"].cast(pa.int64()).to_numpy()


def test_these_are_the_rows_of_seed_one():
    first = rows(SPEC, "a", 0, SECOND).slice(0, 3)
    assert [time - SPEC.start_us for time in times_us(first)] == GOLDEN["us"]
    assert first["k"].to_pylist() == GOLDEN["k"]
    assert first["v"].to_pylist() == GOLDEN["v"]


def test_columns_are_typed():
    assert str(schema(SPEC)) == "ts: timestamp[us, tz=UTC]\nk: int64\nv: int64"
    assert rows(SPEC, "a", 0, SECOND).schema == schema(SPEC)
    assert rows(SPEC, "a", 5, 5).schema == schema(SPEC)


def test_seeds_and_streams_differ():
    table = rows(SPEC, "a", 0, SECOND)
    assert not table.equals(rows(SPEC, "b", 0, SECOND))
    assert not table.equals(rows(replace(SPEC, seed=2), "a", 0, SECOND))


def test_a_further_stream_leaves_the_others_as_they_are():
    more = replace(SPEC, streams=(StreamSpec("z"), *SPEC.streams))
    assert rows(more, "b", 0, SECOND).equals(rows(SPEC, "b", 0, SECOND))


def test_an_unknown_stream_is_refused():
    with pytest.raises(BraidError, match="unknown stream 'c'"):
        rows(SPEC, "c", 0, SECOND)


def test_nothing_comes_before_the_start():
    assert rows(SPEC, "a", -10 * SECOND, 0).num_rows == 0
    assert rows(SPEC, "a", -10 * SECOND, SECOND).equals(rows(SPEC, "a", 0, SECOND))


def test_a_silent_stream_has_no_rows():
    assert rows(WorkloadSpec((StreamSpec("a", 0),)), "a", 0, 1000 * SECOND).num_rows == 0


def test_time_starts_where_the_spec_says():
    early = rows(replace(SPEC, start_us=0), "a", 0, SECOND)
    assert (times_us(early) + SPEC.start_us == times_us(rows(SPEC, "a", 0, SECOND))).all()


def test_rates_change_by_phase_and_phases_repeat():
    phases = (Phase(10, rate=2000), Phase(5, rate=0), Phase(5))
    spec = WorkloadSpec((StreamSpec("a", 500, phases),))
    table = rows(spec, "a", 0, 40 * SECOND)
    counts, _ = np.histogram(times_us(table) - spec.start_us, np.arange(9) * 5 * SECOND)
    expected = np.array([10_000, 10_000, 0, 2500] * 2)
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


def test_skew_changes_by_phase():
    """Paper 001, Figure 9: one half of the partitions gets ten times more, then the other."""
    phases = (Phase(10, weights=(10, 1)), Phase(10, weights=(1, 10)))
    halves = (PartitionSpec(5), PartitionSpec(5))
    spec = WorkloadSpec((StreamSpec("a", 5000, phases),), halves)
    for phase, share in enumerate([10 / 11, 1 / 11, 10 / 11]):
        keys = rows(spec, "a", phase * 10 * SECOND, (phase + 1) * 10 * SECOND)["k"].to_numpy()
        assert np.mean(keys % 10 < 5) == pytest.approx(share, abs=0.01)


def test_a_partition_of_no_weight_gets_nothing():
    parts = (PartitionSpec(3, weight=0), PartitionSpec(2), PartitionSpec(1, weight=0))
    keys = rows(WorkloadSpec((StreamSpec("a", 5000),), parts), "a", 0, SECOND)["k"].to_numpy()
    assert set(keys % 6) == {3, 4}


def test_values_add_up_although_no_partition_can_have_a_third_of_one():
    counts = value_counts(WorkloadSpec((StreamSpec("a"),), (PartitionSpec(300, 3, 30_000),)))
    assert counts.sum() == 10_000
    assert set(counts) == {33, 34}


def test_disorder_delays_rows_and_changes_none():
    late = replace(SPEC, disorder_seconds=2.0)
    table, calm = rows(late, "a", 0, 100 * SECOND), rows(SPEC, "a", 0, 98 * SECOND)
    times = times_us(table)
    behind = np.maximum.accumulate(times) - times
    assert 1.9 * SECOND < behind.max() <= 2 * SECOND
    settled = table.filter(pa.array(times < SPEC.start_us + 98 * SECOND))
    assert settled.sort_by("ts")["ts"].equals(calm["ts"])
    assert sorted(settled["v"].to_pylist()) == sorted(calm["v"].to_pylist())


def test_pads_have_their_width_and_change_no_other_column():
    table = rows(replace(SPEC, pad_bytes=17), "a", 0, SECOND)
    assert table.drop(["pad"]).equals(rows(SPEC, "a", 0, SECOND))
    assert pc.all(pc.equal(pc.binary_length(table["pad"]), 17)).as_py()
    table.validate(full=True)


def test_batches_stay_small_when_a_burst_is_delivered_late():
    phases = (Phase(0.5, rate=1e6), Phase(1000, rate=0))
    spec = WorkloadSpec((StreamSpec("a", 1, phases),), disorder_seconds=30.0)
    sizes = [batch.num_rows for batch in batches(spec, "a", 0, 60 * SECOND)]
    assert max(sizes) <= 131_072
    assert sum(sizes) > 490_000
