"""What holds for every workload: the same rows in any slices, in order, in their partitions."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.workload import (
    PartitionSpec,
    Phase,
    StreamSpec,
    WorkloadSpec,
    dump_spec,
    parse_spec,
    rows,
)

END_US = 3_000_000


@st.composite
def workloads(draw):
    parts = tuple(
        PartitionSpec(
            draw(st.integers(1, 5)),
            draw(st.floats(0.1, 5)),
            draw(st.integers(200, 50_000)),
            draw(st.floats(0.01, 10)),
        )
        for _ in range(draw(st.integers(1, 4)))
    )
    return WorkloadSpec(
        (StreamSpec("a", draw(st.floats(0, 5000)), draw(phases(len(parts)))), StreamSpec("b")),
        parts,
        zipf=draw(st.sampled_from([0.0, 0.8])),
        disorder_seconds=draw(st.sampled_from([0.0, 0.001, 0.3, 5.0])),
        pad_bytes=draw(st.sampled_from([0, 3])),
        seed=draw(st.integers(0, 2**64 - 1)),
    )


def phases(entries):
    weights = st.tuples(*[st.floats(0.01, 10)] * entries)
    phase = st.builds(
        Phase,
        st.floats(0.05, 2),
        st.none() | st.floats(0, 5000) | st.just(200_000.0),
        st.none() | weights,
    )
    return st.lists(phase, max_size=3).map(tuple)


def cuts():
    return st.lists(st.integers(0, END_US), max_size=6).map(
        lambda cut: [0, *sorted(cut), END_US]
    )


@settings(deadline=None, max_examples=60)
@given(workloads(), cuts())
def test_any_slices_give_the_same_rows(spec, cuts):
    slices = [rows(spec, "a", *bounds) for bounds in pairwise(cuts)]
    assert pa.concat_tables(slices).equals(rows(spec, "a", 0, END_US))


@settings(deadline=None, max_examples=60)
@given(workloads())
def test_rows_are_in_order_in_time_and_in_their_partitions(spec):
    table = rows(replace(spec, disorder_seconds=0.0), "a", 0, END_US)
    times = table["ts"].cast(pa.int64()).to_numpy() - spec.start_us
    assert (np.diff(times) >= 0).all()
    assert ((times >= 0) & (times < END_US)).all()
    total = spec.partition_count
    keys = table["k"].to_numpy()
    entries = [entry for entry in spec.partitions for _ in range(entry.count)]
    owned = np.array([entry.tuple_range / (total * entry.join_rate) for entry in entries])
    assert (keys // total < np.ceil(owned)[keys % total] + 1).all()


@settings(deadline=None, max_examples=40)
@given(workloads())
def test_disorder_lets_no_row_wait_longer_than_it_says(spec):
    table = rows(spec, "a", 0, END_US)
    times = table["ts"].cast(pa.int64()).to_numpy()
    behind = np.maximum.accumulate(times) - times
    assert behind.max(initial=0) <= spec.disorder_us


@given(workloads())
def test_every_spec_survives_json(spec):
    assert parse_spec(dump_spec(spec)) == spec
