"""How many groups are filled at a time, by how long batches take."""

from __future__ import annotations

import pytest

from braid.control.fill_pacer import FillPacer

GROUPS, PAUSE_MS, USUAL_MS = 256, 500.0, 300.0


def test_what_is_foreseen_to_fit_into_the_pause_is_filled_at_once() -> None:
    first = [
        FillPacer.of(GROUPS, PAUSE_MS, USUAL_MS, foreseen_ms).groups
        for foreseen_ms in (None, 10.0, 250.0, 100_000.0)
    ]
    assert first == [GROUPS / 16, GROUPS, GROUPS / 2, 1.0]


@pytest.mark.parametrize("both_trees_ms", [0.0, 400.0, 800.0])
@pytest.mark.parametrize("group_ms", [1.0, 10.0])
def test_filling_goes_on_though_two_trees_take_longer_than_one(
    both_trees_ms: float, group_ms: float
) -> None:
    pacer, left, filled = FillPacer.of(GROUPS, PAUSE_MS, USUAL_MS), GROUPS, []
    compiling_ms = 1000.0
    while left > 0:
        groups = min(left, round(pacer.groups))
        filled.append(groups)
        left -= groups
        taken_ms = USUAL_MS + both_trees_ms + compiling_ms + groups * group_ms
        compiling_ms = 0.0
        pacer = pacer.learned(taken_ms)
    room = PAUSE_MS / group_ms
    assert all(groups <= room + 1 for groups in filled)
    assert len(filled) <= GROUPS / room + 8
