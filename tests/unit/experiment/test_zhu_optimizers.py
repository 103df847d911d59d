from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from braid.experiment.random_graphs import random_settings
from braid.experiment.zhu_optimizers import (
    SETS,
    STUDIES,
    Trials,
    pairs_looked_at,
    share_found,
    try_strategies,
)
from braid.experiment.zhu_pictures import draw_strategies
from braid.optimize import cost_of

if TYPE_CHECKING:
    from pathlib import Path


def test_settings_are_as_the_dissertation_has_them_and_the_same_each_time() -> None:
    graphs = list(random_settings(6, 30))
    assert graphs == list(random_settings(6, 30))
    assert len({str(graph.rates) for graph in graphs}) == 30
    for graph in graphs:
        assert all(1 <= rate <= 100 for rate in graph.rates.values())
        assert all(0 <= value < 1 for value in graph.selectivity.values())
    assert {len(graph.selectivity) for graph in graphs} > {5, 6, 7}


def test_nested_loops_look_at_all_pairs_within_the_window() -> None:
    """Set 2, as the rows of a, b and c meet the states of the others."""
    mjoin = pairs_looked_at(SETS[2], cost_of(SETS[2], "(a b c)", "a: b c; b: a c; c: b a"))
    rows_of_a = 20 * 300 + (20 * 300 * 0.02) * 750
    rows_of_b = 20 * 300 + (20 * 300 * 0.02) * 750
    rows_of_c = 50 * 300 + (50 * 300 * 0.5) * 300
    assert mjoin == pytest.approx(rows_of_a + rows_of_b + rows_of_c)
    binary = pairs_looked_at(SETS[2], cost_of(SETS[2], "((a b) c)"))
    state = 300 * 300 * 0.02
    new = 2 * 20 * 20 * 0.02 * 15
    assert binary == pytest.approx(20 * 300 + 20 * 300 + new * 750 + 50 * state)


def test_a_share_is_of_those_settings_that_have_a_plan() -> None:
    def trials(*qualified: bool) -> Trials:
        return Trials(qualified, (1.0,) * len(qualified))

    found = {
        "exhaustive": {3: trials(True, True, False), 4: trials(True, False, True)},
        "mjoin-init": {
            3: trials(True, False, False),
            4: trials(True, False, True),
            5: trials(False, False, False),
        },
    }
    assert share_found(found, "mjoin-init") == 0.75


def test_strategies_are_compared_in_a_table_and_a_picture(tmp_path: Path) -> None:
    steps: list[str] = []
    found = try_strategies(steps.append, most_streams=9, count=1)
    assert steps == [f"{streams} streams" for streams in range(3, 10)]
    assert list(found["exhaustive"]) == [3, 4, 5, 6, 7, 8]
    rows = {what: ours for what, ours, _ in STUDIES["optimizer-strategies"].compare(found)}
    assert "3 streams: qualified, % (exhaustive, mjoin-init, bjtree-init)" in rows
    assert "9 streams: qualified, % (mjoin-init, bjtree-init)" in rows
    draw_strategies(found, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
