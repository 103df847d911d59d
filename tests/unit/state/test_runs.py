from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.plan.placement import ByHash
from braid.record.commit import Commit, ResultFile, first_commit
from braid.record.generation import Generation
from braid.record.move import Waiting
from braid.state.groups import group_bounds, group_of, ranges_of
from braid.state.runs import Section, SortedRun, decode, encode, hashes_of, of_groups, times_of
from tests.unit.state.making import random_rows, run_rows

counts = st.sampled_from([1, 2, 3, 7, 256, 1000, 65_536])
ranges = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=3).map(tuple)
names = st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=5).filter(
    lambda name: name not in (".", "..")
)
sizes = st.integers(0, 2**62 - 1)
sections = st.builds(
    Section,
    names,
    sizes,
    sizes,
    st.text(max_size=16),
    sizes,
    ranges,
)

LAW = settings(deadline=None)  # the first call may compile
times = st.integers(-(2**57), 2**57)
runs = st.builds(
    SortedRun,
    names,
    st.sampled_from(["memory", "disk", ""]),
    sizes,
    st.text(max_size=16),
    sizes,
    times,
    times,
    st.lists(sections, max_size=3).map(tuple),
)
parts = st.builds(
    ResultFile, st.lists(names, min_size=1, max_size=3).map("/".join), sizes, sizes, st.text()
)
generations = st.builds(
    Generation,
    space=st.integers(0, 3),
    born=st.integers(0),
    groups=ranges,
    watermark_us=st.none() | times,
    runs=st.dictionaries(st.integers(0, 3), runs, max_size=2),
)
waiting = st.builds(Waiting, section=sections)
commits = st.builds(
    Commit,
    batch=st.integers(-1),
    watermark_us=st.none() | times,
    newest_us=st.lists(st.none() | times, max_size=3).map(tuple),
    assignments=st.lists(st.lists(st.integers(0, 7), max_size=9).map(tuple), max_size=2).map(
        tuple
    ),
    closed_us=st.none() | times,
    ladders=st.lists(
        st.lists(st.lists(runs, max_size=2).map(tuple), max_size=2).map(tuple), max_size=2
    ).map(tuple),
    generations=st.lists(st.lists(generations, max_size=2).map(tuple), max_size=2).map(tuple),
    purged_us=st.lists(st.none() | times, max_size=2).map(tuple),
    waiting=st.lists(st.lists(waiting, max_size=2).map(tuple), max_size=2).map(tuple),
    staged=st.text(),
    parts=st.lists(parts, max_size=2).map(tuple),
    late_staged=st.text(),
    late_parts=st.lists(parts, max_size=2).map(tuple),
    position=st.none() | st.just({"length": 3, "checksum": "abc"}),
    source_batch=st.integers(-1),
)


def through_json(data: object) -> object:
    return json.loads(json.dumps(data))


@LAW
@given(sections)
def test_a_section_survives_json(section: Section) -> None:
    assert Section.from_json(through_json(section.to_json())) == section


@LAW
@given(runs)
def test_a_run_survives_json(run: SortedRun) -> None:
    assert SortedRun.from_json(through_json(run.to_json())) == run


@LAW
@given(commits)
def test_a_commit_survives_json(commit: Commit) -> None:
    assert Commit.from_json(through_json(commit.to_json())) == commit


@LAW
@given(st.integers(0, 2**64 - 1), counts)
def test_a_hash_lies_within_the_bounds_of_its_group_alone(key_hash: int, groups: int) -> None:
    group = int(group_of(np.array([key_hash], np.uint64), groups)[0])
    lower, upper = group_bounds(group, groups)
    assert 0 <= group < groups
    assert lower <= key_hash < upper


@LAW
@given(counts)
def test_the_groups_tile_the_hash_space(groups: int) -> None:
    bounds = [group_bounds(group, groups) for group in range(groups)]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == 1 << 64
    assert all(a[1] == b[0] for a, b in pairwise(bounds))


@pytest.mark.parametrize("groups", [1, 3, 16, 300])
def test_the_slices_of_all_groups_are_the_run_in_order(groups: int) -> None:
    rows = random_rows(np.random.default_rng(3), 200, 0, 1000)
    slices = [of_groups(rows, np.arange(groups) == group) for group in range(groups)]
    for group, part in enumerate(slices):
        assert set(group_of(hashes_of(part), groups)) <= {group}
    assert pa.concat_batches(slices).equals(rows)


@pytest.mark.parametrize("edge", [0, 2**60 - 1, 2**60, 2**64 - 1])
def test_a_row_at_the_edge_of_a_group_is_sliced_with_the_group_it_is_of(edge: int) -> None:
    rows = run_rows([edge], [0])
    holders = [group for group in range(16) if of_groups(rows, np.arange(16) == group).num_rows]
    assert holders == group_of(np.array([edge], np.uint64), 16).tolist()


@pytest.mark.parametrize("count", [0, 1, 100])
def test_a_run_survives_its_bytes(count: int) -> None:
    random = np.random.default_rng(4)
    rows = run_rows(random.integers(0, 2**64, count, np.uint64), random.integers(0, 9, count))
    assert decode(encode(rows)).equals(rows)


def test_a_decoded_run_points_into_its_bytes() -> None:
    data = encode(random_rows(np.random.default_rng(5), 1000, 0, 1000))
    rows = decode(data)
    for array in (hashes_of(rows), times_of(rows)):
        assert data.address <= array.ctypes.data < data.address + data.size


@LAW
@given(st.lists(st.booleans(), max_size=12))
def test_ranges_name_just_the_marked_groups(marked: list[bool]) -> None:
    named = {
        g for lower, upper in ranges_of(np.array(marked, np.bool_)) for g in range(lower, upper)
    }
    assert named == {group for group, mark in enumerate(marked) if mark}


def test_what_a_section_lacks_does_not_count_whoever_owns_it() -> None:
    section = Section("x.log", 0, 1, "", 1, ((0, 2),)).lacking(np.arange(5) == 3)
    assert section.counting(np.ones(5, np.bool_)).tolist() == [False, False, True, False, True]
    assert not section.counting(np.zeros(5, np.bool_)).any()


@LAW
@given(st.integers(1, 12), st.integers(1, 64))
def test_equal_shares_are_contiguous_and_differ_by_one_group_at_most(
    workers: int, groups: int
) -> None:
    shares = ByHash.equal_shares(groups, workers).owners
    assert list(shares) == sorted(shares)
    sizes = [shares.count(worker) for worker in range(workers)]
    assert sum(sizes) == groups
    assert max(sizes) - min(sizes) <= 1


def test_the_first_commit_has_no_state_and_all_groups() -> None:
    commit = first_commit(streams=3, spaces=2, states=3, rounds=1, groups=16, workers=4)
    assert (commit.batch, commit.workers, commit.state_rows) == (-1, 4, 0)
    assert len(commit.assignments) == 2
    for assignment in commit.assignments:
        assert sorted(set(assignment)) == [0, 1, 2, 3]
    assert not commit.sections()
