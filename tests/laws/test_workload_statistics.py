"""Streams obey the papers' definitions: fixed seeds, bounds of five standard deviations."""

import numpy as np
import pyarrow as pa
import pytest

from braid.workload import PartitionSpec, StreamSpec, WorkloadSpec, rows
from braid.workload.draw import value_counts

SECOND = 1_000_000
SEEDS = [0, 1, 2]


def workload(*parts, rate=30_000.0, seed=0, zipf=0.0):
    streams = tuple(StreamSpec(name, rate) for name in "abc")
    return WorkloadSpec(streams, parts, zipf=zipf, seed=seed)


def keys_of(spec, stream, seconds):
    return rows(spec, stream, 0, seconds * SECOND)["k"].to_numpy()


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_per_second_are_poisson(seed):
    spec = workload(PartitionSpec(10), rate=100.0, seed=seed)
    seconds = 2000
    times = rows(spec, "a", 0, seconds * SECOND)["ts"].cast(pa.int64()).to_numpy()
    counts = np.bincount((times - spec.start_us) // SECOND, minlength=seconds)
    assert abs(counts.mean() - 100) < 5 * np.sqrt(100 / seconds)
    # For Poisson counts, variance / mean is spread by sqrt(2 / n) around 1.
    assert abs(counts.var() / counts.mean() - 1) < 5 * np.sqrt(2 / seconds)


@pytest.mark.parametrize("seed", SEEDS)
def test_gaps_are_exponential(seed):
    spec = workload(PartitionSpec(10), rate=1000.0, seed=seed)
    times = rows(spec, "a", 0, 200 * SECOND)["ts"].cast(pa.int64()).to_numpy()
    gaps = np.diff(times) / SECOND
    for quantile in (0.1, 0.5, 0.9, 0.99):
        share = np.mean(gaps < -np.log(1 - quantile) / 1000)
        bound = 5 * np.sqrt(quantile * (1 - quantile) / len(gaps))
        assert abs(share - quantile) < bound + 1e-3  # gaps are cut to whole microseconds


@pytest.mark.parametrize("seed", SEEDS)
def test_the_join_factor_grows_by_the_join_rate_every_tuple_range(seed):
    """Paper 001, 3.1: after every k tuples there are r more tuples per join value."""
    spec = workload(PartitionSpec(300, join_rate=3, tuple_range=30_000), seed=seed)
    keys = keys_of(spec, "a", 5)
    for ranges in (1, 2, 4):
        seen = np.unique_counts(keys[: ranges * 30_000]).counts
        expected = 3 * ranges
        assert seen.sum() / 10_000 == expected
        # Values not drawn at all are part of the average: e**-expected of them.
        missed = 10_000 * np.exp(-expected)
        assert abs(10_000 - len(seen) - missed) < 5 * np.sqrt(missed) + 1
        per_value = np.concatenate([seen, np.zeros(10_000 - len(seen))])
        assert abs(per_value.var() / expected - 1) < 5 * np.sqrt(2 / 10_000)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tuple_joins_as_many_as_the_ratio_says(seed):
    """Paper 000, 3.4: at ratio 2, a tuple makes 4 results after one range, 16 after two."""
    spec = workload(PartitionSpec(300, join_rate=2, tuple_range=30_000), seed=seed)
    a, b, c = (keys_of(spec, stream, 3) for stream in "abc")
    probes = np.bincount(a[:30_000], minlength=16_000)
    for factor, ranges in ((2, 1), (4, 2)):
        met = [np.bincount(side[: ranges * 30_000], minlength=16_000) for side in (b, c)]
        mean = (probes * met[0] * met[1]).sum() / 30_000
        # The product of two Poisson counts varies by this much, for each value probed.
        variance = (factor**2 + factor) ** 2 - factor**4
        spread = np.sqrt(variance * (probes**2).sum()) / 30_000
        assert abs(mean - factor**2) < 5 * spread


@pytest.mark.parametrize("seed", SEEDS)
def test_partitions_have_join_rates_of_their_own(seed):
    """Paper 001, Figure 7: a third of the partitions at join rate 4, a third at 2 and at 1."""
    spec = workload(*(PartitionSpec(10, rate, 30_000) for rate in (4, 2, 1)), seed=seed)
    keys = keys_of(spec, "a", 2)[:30_000]
    values = value_counts(spec)
    for third, rate in enumerate((4, 2, 1)):
        mine = slice(10 * third, 10 * (third + 1))
        tuples = np.isin(keys % 30, np.arange(30)[mine]).sum()
        factor = tuples / values[mine].sum()
        assert abs(factor - rate) < 5 * rate * np.sqrt(2 / 3 / 10_000) + 0.01


@pytest.mark.parametrize("seed", SEEDS)
def test_partitions_have_tuple_ranges_of_their_own(seed):
    """Paper 001, Figure 14: join rate 4 per 15 K tuples beside join rate 1 per 45 K."""
    parts = (PartitionSpec(10, 4, 15_000), PartitionSpec(20, 1, 45_000))
    spec = workload(*parts, seed=seed)
    keys, values = keys_of(spec, "a", 3)[:45_000], value_counts(spec)
    sizes = np.bincount(keys % 30, minlength=30)
    assert sizes[:10].sum() / values[:10].sum() == pytest.approx(
        3 * 4, rel=5 * np.sqrt(2 / 3 / 15_000)
    )
    assert sizes[10:].sum() / values[10:].sum() == pytest.approx(
        1, rel=5 * np.sqrt(1 / 3 / 30_000)
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("zipf", [0.0, 0.7, 1.5])
def test_partitions_get_their_share(seed, zipf):
    spec = workload(PartitionSpec(5), PartitionSpec(5, weight=3), seed=seed, zipf=zipf)
    keys = keys_of(spec, "a", 3)
    loads = np.repeat([1.0, 3.0], 5) * np.arange(1, 11) ** -zipf
    expected = len(keys) * loads / loads.sum()
    assert (np.abs(np.bincount(keys % 10) - expected) < 5 * np.sqrt(expected)).all()
