from __future__ import annotations

import math
from typing import Any

import pytest

from braid import BraidError
from braid.optimize.timing import (
    TRIGGERS,
    UNKNOWN,
    Certainty,
    DataDriven,
    DataStatistics,
    Decision,
    Load,
    Measure,
    MemoryDriven,
    RefinedMemoryDriven,
    Situation,
    Trigger,
)


def data(a: float = 20.0, ab: float | None = 0.1) -> DataStatistics:
    selectivity = UNKNOWN if ab is None else Measure.estimated(ab)
    return DataStatistics(
        {"a": Measure.exact(a), "b": Measure.exact(5)}, {("a", "b"): selectivity}
    )


def told(trigger: Trigger, *situations: Situation) -> list[Decision]:
    """What a trigger says of situations, one after the other."""
    decisions = []
    for situation in situations:
        trigger, decision = trigger.decide(situation)
        decisions.append(decision)
    return decisions


def test_changed_statistics_are_a_reason_once_the_interval_is_over() -> None:
    trigger = DataDriven(interval_ms=1000, threshold=0.5)
    decisions = told(
        trigger,
        Situation(0, data()),
        Situation(500, data()),
        Situation(1000, data()),
        Situation(1500, data(a=100)),
        Situation(2000, data(a=100)),
        Situation(3000, data(a=100)),
        Situation(3500, data(a=60)),
        Situation(3600, data(ab=0.04)),
    )
    assert [decision.yes for decision in decisions] == [
        False,
        False,
        True,
        False,
        True,
        False,
        False,
        True,
    ]
    assert decisions[2].reason == "the plan was made without statistics"
    assert decisions[3].reason == "the interval is not over"
    assert decisions[4].reason == "a has changed"
    assert decisions[4].numbers == {"passed_ms": 1000, "change": 0.8, "threshold": 0.5}
    assert decisions[6].reason == "statistics have hardly changed"
    assert decisions[7].reason == "a has changed", "by more than the selectivity has"


def test_statistics_on_their_way_are_a_reason_until_they_stand() -> None:
    trigger = DataDriven(interval_ms=1000, threshold=0.5)
    times = [20.0, 20.0, 20.0, 50.0, 80.0, 100.0, 105.0, 140.0]
    situations = [Situation(1000.0 * n, data(a=a)) for n, a in enumerate(times)]
    decisions = [each.yes for each in told(trigger, *situations)]
    assert decisions == [False, True, False, True, True, True, False, False]


def test_an_eager_trigger_does_not_wait_for_its_interval() -> None:
    trigger = DataDriven(interval_ms=1000, eager=True)
    situations = [Situation(0, data()), Situation(1, data()), Situation(2, data(ab=0.01))]
    assert [each.yes for each in told(trigger, *situations)] == [False, True, True]


def test_a_number_that_becomes_known_has_changed_and_one_that_is_lost_has_not() -> None:
    assert data(ab=0.1).change_since(data(ab=None)) == (1.0, "a with b")
    assert data(ab=None).change_since(data(ab=0.1))[0] == 0.0
    assert data(a=0).change_since(data(a=0)) == (0.0, "a")
    assert data(a=0).change_since(data(a=1)) == (1.0, "a")


def loads(
    trigger: Trigger, *figures: float, step_ms: float = 1000, **other: Any
) -> list[Decision]:
    """What a trigger says of waiting rows, sample by sample."""
    return told(
        trigger,
        *(
            Situation(number * step_ms, data(), Load(waiting_rows=Measure.exact(rows), **other))
            for number, rows in enumerate(figures)
        ),
    )


def test_memory_near_its_budget_is_a_reason() -> None:
    trigger = MemoryDriven(high_water=0.9, interval_ms=5000)
    memory = [10, 89, 90, 95, 95, 95, 95, 95, 50]
    decisions = told(
        trigger,
        *(
            Situation(1000 * number, data(), Load(Measure.exact(used), 100))
            for number, used in enumerate(memory)
        ),
    )
    assert [n for n, decision in enumerate(decisions) if decision.yes] == [2, 7]
    assert decisions[2].reason == "memory is near its budget"
    assert decisions[2].numbers == {"memory": 90, "mark": 90}
    assert decisions[3].reason == "the interval is not over"


def test_rows_that_wait_are_a_reason_if_they_rise_for_a_whole_period() -> None:
    trigger = MemoryDriven(period_ms=8000, growth=0.5)
    rising = [100 + 20 * number for number in range(9)]
    decisions = loads(trigger, *rising)
    assert [decision.yes for decision in decisions] == [False] * 8 + [True]
    assert decisions[-1].reason == "waiting rows have risen steadily"
    assert decisions[-1].numbers["after"] > 1.5 * decisions[-1].numbers["before"]


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        ([100] * 20, "memory and backlog are steady"),
        ([100, 120, 90, 110] * 5, "memory and backlog are steady"),
        ([300 - 10 * number for number in range(20)], "memory and backlog are steady"),
        ([100] * 10 + [900] * 3, "waiting rows have risen, but not steadily"),
        ([100 + number for number in range(20)], "memory and backlog are steady"),
    ],
)
def test_steady_rows_noise_and_jumps_are_no_reason(figures: list[float], reason: str) -> None:
    decisions = loads(MemoryDriven(period_ms=8000, growth=0.5), *figures)
    assert not any(decision.yes for decision in decisions)
    assert reason in {decision.reason for decision in decisions}


def test_only_the_refined_trigger_looks_between_the_joins() -> None:
    situations = [
        Situation(
            1000 * number,
            data(),
            Load(
                waiting_rows=Measure.exact(0),
                intermediate_rows={"(a b)": Measure.exact(50.0 * 1.2**number)},
            ),
        )
        for number in range(12)
    ]
    plain = told(MemoryDriven(period_ms=8000), *situations)
    refined = told(RefinedMemoryDriven(period_ms=8000), *situations)
    assert not any(decision.yes for decision in plain)
    assert [n for n, decision in enumerate(refined) if decision.yes] == [8]
    assert refined[8].reason == "rows of (a b) have risen steadily"


def test_unknown_figures_are_no_reason() -> None:
    for trigger in (MemoryDriven(period_ms=10), RefinedMemoryDriven(period_ms=10)):
        situations = [Situation(float(n), data(), Load(memory_budget=1)) for n in range(50)]
        assert not any(decision.yes for decision in told(trigger, *situations))


@pytest.mark.parametrize("name", TRIGGERS)
def test_triggers_answer_the_same_way_twice(name: str) -> None:
    trigger: Trigger = TRIGGERS[name]()
    for number in range(30):
        situation = Situation(
            number * 7000.0,
            data(a=20 * (1 + number % 3)),
            Load(Measure.exact(number), 25, Measure.exact(number**2)),
        )
        assert trigger.decide(situation) == trigger.decide(situation)
        trigger, decision = trigger.decide(situation)
        assert decision.reason


@pytest.mark.parametrize(
    ("make", "told_of"),
    [
        (lambda: DataDriven(interval_ms=-1), "interval_ms"),
        (lambda: DataDriven(threshold=1.5), "threshold"),
        (lambda: DataDriven(threshold=math.nan), "threshold"),
        (lambda: MemoryDriven(high_water=-0.1), "high_water"),
        (lambda: MemoryDriven(period_ms=-5), "period_ms"),
        (lambda: Measure(None, Certainty.EXACT), "exact"),
        (lambda: Measure(1.0, Certainty.UNKNOWN), "unknown"),
        (lambda: Measure.estimated(math.nan), "estimated"),
    ],
)
def test_settings_and_numbers_that_make_no_sense_are_refused(make: Any, told_of: str) -> None:
    with pytest.raises(BraidError, match=told_of) as caught:
        make()
    assert caught.value.hint


def test_statistics_become_a_graph_with_an_assumption_for_what_is_unknown() -> None:
    graph = data(ab=None).graph(3.0, assumed_selectivity=0.25)
    assert graph.selectivity == {("a", "b"): 0.25}
    assert graph.rates == {"a": 20, "b": 5}
    nothing = DataStatistics({"a": UNKNOWN, "b": Measure.exact(1)}, {("a", "b"): UNKNOWN})
    with pytest.raises(BraidError, match="rate of stream 'a' is unknown"):
        nothing.graph(3.0)
