from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from braid.state.bloom import filter_of, may_have

MIX = np.uint64(0x9E3779B185EBCA87)


@settings(deadline=None)  # the first call compiles
@given(hnp.arrays(np.uint64, st.integers(0, 60)))
def test_what_is_there_passes(hashes: np.ndarray) -> None:
    assert may_have(filter_of(hashes), hashes).all()


@pytest.mark.parametrize("step", [1, 64, 1 << 20], ids=["dense", "even", "sparse"])
def test_of_what_is_not_there_little_passes(step: int) -> None:
    keys = np.arange(200_000, dtype=np.uint64) * np.uint64(step) * MIX
    there, absent = keys[:100_000], keys[100_000:]
    assert may_have(filter_of(there), absent).mean() < 0.05


def test_nothing_passes_an_empty_filter() -> None:
    assert not may_have(
        filter_of(np.array([], np.uint64)), np.arange(9).astype(np.uint64)
    ).any()
