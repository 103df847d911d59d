from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.worker import boundaries
from braid.worker.boundaries import BOUNDARY, between, spread, sweep

if TYPE_CHECKING:
    import pytest

SLIDE = 10
LAW = settings(deadline=None)  # the first call may compile

partial_aggregates = st.lists(
    st.tuples(
        st.integers(-20, 20),  # first, in slides
        st.integers(0, 12),  # further boundaries
        st.sampled_from(["x", "y", None]),
        st.none() | st.integers(-5, 5),
    ),
    max_size=12,
)


def table(rows: list[tuple[int, int, str | None, int | None]]) -> pa.Table:
    return pa.table(
        {
            "first": pa.array([first * SLIDE for first, *_ in rows], pa.int64()),
            "time": pa.array([(first + more) * SLIDE for first, more, *_ in rows], pa.int64()),
            "key 0": pa.array([key for *_, key, _ in rows], pa.string()),
            "aggregate 0": pa.array([value for *_, value in rows], pa.int64()),
        }
    )


def summed(pieces: list[pa.Table]) -> dict[tuple[int, str | None], int | None]:
    """By boundary and key, the sum, which is null where all of its values are."""
    values: dict[tuple[int, str | None], list[int]] = {}
    for piece in pieces:
        names = (BOUNDARY, "key 0", "aggregate 0")
        for boundary, key, value in zip(*(piece[n].to_pylist() for n in names), strict=True):
            values.setdefault((boundary, key), []).extend([] if value is None else [value])
    return {place: sum(found) if found else None for place, found in values.items()}


@LAW
@given(
    rows=partial_aggregates,
    after=st.none() | st.integers(-250, 250),
    up_to=st.integers(-250, 400),
)
def test_a_sweep_finds_what_writing_out_every_boundary_finds(
    rows: list[tuple[int, int, str | None, int | None]], after: int | None, up_to: int
) -> None:
    counting = between(table(rows), SLIDE, after, up_to)
    swept = list(sweep(counting, SLIDE, ["key 0"], ["aggregate 0"]))
    places = [
        p
        for piece in swept
        for p in zip(piece[BOUNDARY].to_pylist(), piece["key 0"].to_pylist(), strict=True)
    ]
    assert len(places) == len(set(places))
    assert summed(swept) == summed(list(spread(counting, SLIDE)))


@LAW
@given(rows=partial_aggregates)
def test_every_boundary_between_first_and_last_counts(
    rows: list[tuple[int, int, str | None, int | None]],
) -> None:
    expected = {
        (boundary * SLIDE, key)
        for first, more, key, _ in rows
        for boundary in range(first, first + more + 1)
    }
    counting = between(table(rows), SLIDE, None, 10**6)
    assert set(summed(list(sweep(counting, SLIDE, ["key 0"], ["aggregate 0"])))) == expected


def test_without_keys_all_is_one_group() -> None:
    counting = between(table([(0, 1, "x", 1), (1, 1, "y", 2)]), SLIDE, None, 100)
    (piece,) = sweep(counting, SLIDE, [], ["aggregate 0"])
    assert piece.to_pydict() == {BOUNDARY: [0, 10, 20], "aggregate 0": [1, 3, 2]}


def test_pieces_are_bounded_and_never_part_a_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "MOST_ROWS", 4)
    counting = between(table([(0, 30, "x", 1), (5, 30, "y", 2)]), SLIDE, None, 10**6)
    pieces = list(spread(counting, SLIDE))
    ends = [piece[BOUNDARY].to_numpy() for piece in pieces]
    assert all(a.max() < b.min() for a, b in pairwise(ends))
    assert max(map(len, ends)) <= 4
    whole = np.concatenate(ends)
    assert len(whole) == 62
