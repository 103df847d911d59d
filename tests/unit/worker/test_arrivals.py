from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.model.errors import BraidError
from braid.worker.arrivals import _taken

VALUES = st.one_of(st.none(), st.text(max_size=3))


@given(st.lists(st.lists(VALUES, max_size=4), max_size=5), st.data())
def test_values_of_a_column_in_several_chunks_are_those_of_one(
    chunks: list[list[str | None]], data: st.DataObject
) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())
    places = st.integers(0, max(0, len(column) - 1))
    order = data.draw(st.lists(places, max_size=8 if len(column) else 0))
    taken = _taken(column, np.array(order, np.int64))
    values = [value for chunk in chunks for value in chunk]
    assert taken.to_pylist() == [values[place] for place in order]


def test_more_than_two_gigabytes_of_a_column_are_refused_with_the_cure() -> None:
    length = (1 << 30) + 16  # two of them need offsets beyond 32 bits
    offsets, zeros = np.array([0, length], np.int32), np.zeros(length, np.uint8)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(zeros)]
    text = pa.Array.from_buffers(pa.string(), 1, buffers)
    with pytest.raises(BraidError, match="more than 2 GB") as caught:
        _taken(pa.chunked_array([text, text]), np.array([0, 1]))
    assert "--files-per-batch" in str(caught.value.hint)
