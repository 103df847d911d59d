"""How rows are chosen that may join, where all would be too many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.record.worker_orders import Share
from braid.state.groups import group_counts
from braid.worker.backlog import evenly

GROUPS = 8


@given(
    hashes=st.lists(st.integers(0, 2**64 - 1), max_size=60),
    weights=st.lists(st.sampled_from([0.5, 1.0, 3.0, 20.0]), min_size=GROUPS, max_size=GROUPS),
    most=st.floats(0, 100),
)
def test_as_much_joins_as_may_and_no_group_joins_more_than_another_that_must_wait(
    hashes: list[int], weights: list[float], most: float
) -> None:
    rows, each = np.array(sorted(hashes), np.uint64), np.array(weights)
    joins = evenly(rows, each, most)
    counts, taken = group_counts(rows, GROUPS), group_counts(rows[joins], GROUPS)
    amounts = taken * each
    assert amounts.sum() <= most or joins.all()
    cut = taken < counts
    if not cut.any():
        assert (counts * each).sum() <= most + 1e-9
        return
    assert amounts.sum() > most - each[cut].max(), "one more row would be too much"
    # Up to a row, those that are cut have the same, and no other has more.
    least_of_cut = (amounts + each)[cut].min()
    assert (amounts - each <= least_of_cut + 1e-9).all()


def test_rows_that_came_in_leave_less_time_to_join_some_but_never_none() -> None:
    assert Share(1000).for_joining(0) == 1000
    assert Share(1000).for_joining(400) == pytest.approx(800)
    assert Share(1000).for_joining(10_000) == pytest.approx(50)
