from __future__ import annotations

import pytest

from braid.experiment.outcome import PlanChange
from braid.experiment.zhu_replanning import (
    EXPERIMENTS,
    leads,
    overhead,
    replan_many,
    replan_once,
    state_ratio,
    time_ratio,
    two_joins,
)
from tests.unit.experiment.making import outcome

PAIR = {
    "with": outcome(
        [10, 10, 40, 10, 10, 10],
        state_bytes=(100, 100, 160, 40, 40, 40),
        changes=(PlanChange("moving-state", "(a (b c))", 2, 3),),
    ),
    "without": outcome([10, 10, 20, 20, 20, 20]),
}


def test_a_row_finds_as_many_matches_as_is_said() -> None:
    streams = two_joins(1000, 0.5, 2, 20, 8)
    matches = [part * 1000 * streams.window_s for part in streams.selectivities]
    assert matches == pytest.approx([0.5, 2])


def test_throughput_and_state_are_compared_from_a_batch_on() -> None:
    assert time_ratio(PAIR, 0) == pytest.approx(100 / 90)
    assert time_ratio(PAIR, 1, 3) == pytest.approx(30 / 50)
    assert state_ratio(PAIR, 2) == pytest.approx(0.7)
    assert leads(PAIR, 0) == pytest.approx([1, 1, 40 / 60, 60 / 70, 1, 100 / 90])
    assert leads(PAIR, 4) == pytest.approx([1, 100 / 90])


def test_the_first_and_the_second_trial_count_alike() -> None:
    both = {**PAIR, "with again": outcome([30, 10, 40, 10, 10, 10])}
    assert time_ratio(both, 0, 2) == pytest.approx(20 / 30)


def test_the_overhead_is_the_median_of_pairs_after_the_first_windows() -> None:
    pairs = {
        "with": outcome([100] * 10 + [102, 204, 500, 306, 90]),
        "without": outcome([900] * 10 + [100, 200, 100, 300, 100]),
    }
    found, lower, upper = overhead(pairs)
    assert found == pytest.approx(0.02)
    assert lower < found < upper
    rows = EXPERIMENTS["replan-stable"].compare(pairs)
    assert rows[0][1] == "2.0%"
    same = dict.fromkeys(pairs, pairs["without"])
    assert overhead(same) == (0, 0, 0)


def test_one_switch_is_told_with_its_change_and_without_any() -> None:
    compare = replan_once(two_joins(100, 1, 4, 6, 1)).compare
    rows = {what: ours for what, ours, _ in compare(PAIR)}
    assert rows["batches from the switch to the change"] == "1"
    assert rows["throughput with : without, from then on"] == "2.00"
    assert rows["state with : without, from then on"] == "0.40"
    rows = {what: ours for what, ours, _ in compare({**PAIR, "with": PAIR["without"]})}
    assert rows["changes of plan"] == "0"
    assert rows["throughput with : without, from the switch on"] == "1.00"


def test_many_switches_are_told_stretch_by_stretch() -> None:
    rows = replan_many(two_joins(100, 1, 4, 6, 2, 4)).compare(PAIR)
    assert ("batches until it stays above 1", "2", "0") in rows
    stretches = [(what, ours) for what, ours, _ in rows if "to" in what.split()]
    assert stretches == [
        ("throughput with : without, batches 2 to 3 (the plan without is bad)", "0.80"),
        ("throughput with : without, batches 4 to 5 (the plan without is good)", "2.00"),
    ]
