"""Whether plans change: hysteresis, the query log, and the advisor that asks both."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from braid import BraidError
from braid.optimize.plan import Budget, Plan
from braid.optimize.timing import (
    OPTIMIZERS,
    Advisor,
    DataDriven,
    DataStatistics,
    Hysteresis,
    Load,
    Measure,
    QueryLog,
    Situation,
)
from braid.plan.tree import Join

STREAMS = ("a", "b", "c")
AB, BC = Join((Join((0, 1)), 2)), Join((0, Join((1, 2))))


def plan(shape: Join, cpu: float, memory: float = 1.0, *, qualified: bool = True) -> Plan:
    return Plan(STREAMS, shape, {}, cpu, memory, qualified)


def statistics(ab: float, bc: float, rate: float = 20.0) -> DataStatistics:
    return DataStatistics(
        {name: Measure.exact(rate) for name in STREAMS},
        {("a", "b"): Measure.exact(ab), ("b", "c"): Measure.estimated(bc)},
    )


def test_a_clear_gain_is_worth_a_change_and_a_small_one_is_not() -> None:
    guard, now = Hysteresis(gain=0.2), plan(AB, 100)
    assert guard.weigh(0, Budget(), now, plan(BC, 80))[1].yes
    assert not guard.weigh(0, Budget(), now, plan(BC, 81))[1].yes
    assert not guard.weigh(0, Budget(), now, plan(AB, 10))[1].yes, "the same plan"


def test_budgets_go_before_cpu() -> None:
    guard, budget = Hysteresis(gain=0.2), Budget(cpu=100, memory=100)
    too_large = plan(AB, 50, 200, qualified=False)
    fits, hardly = plan(BC, 99, 99), plan(BC, 10, 170, qualified=False)
    assert guard.weigh(0, budget, too_large, fits)[1].yes
    decision = guard.weigh(0, budget, too_large, hardly)[1]
    assert (decision.yes, decision.reason) == (False, "no plan was found that fits much better")
    assert guard.weigh(0, budget, too_large, plan(BC, 10, 150, qualified=False))[1].yes
    decision = guard.weigh(0, budget, plan(AB, 90, 90), plan(BC, 1, 101, qualified=False))[1]
    assert not decision.yes
    assert "other would not" in decision.reason


def test_after_a_change_the_plan_rests_and_longer_each_time_it_was_in_vain() -> None:
    guard = Hysteresis(rest_ms=100)
    plans = [plan(AB, 100), plan(BC, 50)]
    changes = []
    for at in range(3000):
        current, candidate = plans
        guard, decision = guard.weigh(float(at), Budget(), current, candidate)
        if decision.yes:
            changes.append(at)
            # As if the other had become as much cheaper at once.
            plans = [replace(candidate, cpu=100), replace(current, cpu=50)]
    assert changes == [0, 100, 300, 700, 1500]


def test_a_plan_that_lasted_ends_the_caution() -> None:
    guard = Hysteresis(rest_ms=100)
    ab, bc = plan(AB, 100), plan(BC, 50)
    for at, rest_ms in ((0.0, 100), (100.0, 200), (300.0, 400), (1900.0, 100)):
        guard, decision = guard.weigh(at, Budget(), ab, bc)
        assert decision.yes
        assert guard.next_rest_ms == rest_ms
    guard, decision = guard.weigh(1950, Budget(), ab, bc)
    assert not decision.yes
    assert decision.numbers["rest_ms"] == 50


def test_the_log_recalls_the_nearest_statistics_if_they_are_near_enough() -> None:
    log = QueryLog(tolerance=0.2)
    log = log.remember(statistics(0.1, 0.5), plan(AB, 1))
    log = log.remember(statistics(0.5, 0.1), plan(BC, 1))
    _, served = log.recall(statistics(0.45, 0.1))
    assert served is not None
    assert served.tree == "(a (b c))"
    assert log.recall(statistics(0.3, 0.3))[1] is None
    unknown = DataStatistics({name: Measure.exact(20.0) for name in STREAMS}, {})
    assert log.recall(unknown)[1] is None, "numbers that are not known are not near"


def test_the_log_forgets_what_was_not_asked_for_longest() -> None:
    log = QueryLog(tolerance=0.1, capacity=2)
    log = log.remember(statistics(0.1, 0.5), plan(AB, 1)).remember(
        statistics(0.5, 0.1), plan(BC, 1)
    )
    log, _ = log.recall(statistics(0.1, 0.5))
    log = log.remember(statistics(0.9, 0.9), plan(AB, 1))
    assert log.recall(statistics(0.1, 0.5))[1] is not None
    assert log.recall(statistics(0.5, 0.1))[1] is None
    log = log.remember(statistics(0.9, 0.89), plan(BC, 1))
    assert [each.tree for each in log.entries] == ["((a b) c)", "(a (b c))"], "in place of it"


def advisor(**other: float) -> Advisor:
    return Advisor(
        trigger=DataDriven(interval_ms=0, eager=True),
        window=15.0,
        optimizer="bjtree-init",
        hysteresis=Hysteresis(rest_ms=0),
        budget=Budget(**other),
    )


def test_the_advisor_changes_the_plan_when_selectivities_trade_places() -> None:
    now = advisor()
    now, first = now.advise(Situation(0, statistics(0.02, 0.5)), "((a b) c)")
    assert first.plan is None
    assert first.decision.reason == "statistics have only begun"
    now, kept = now.advise(Situation(1, statistics(0.02, 0.5)), "((a b) c)")
    assert kept.plan is None
    assert "best that was found" in kept.decision.reason
    now, changed = now.advise(Situation(2, statistics(0.5, 0.02)), "((a b) c)")
    assert changed.plan is not None
    assert changed.plan.tree == "(a (b c))"
    assert changed.decision.reason == "a with b has changed: another saves CPU"
    assert changed.decision.numbers["new_cpu"] < changed.decision.numbers["cpu"]
    assert [served.tree for served in now.log.entries] == ["((a b) c)", "(a (b c))"]


def test_the_advisor_takes_a_plan_from_the_log_for_statistics_that_it_knows() -> None:
    known = QueryLog().remember(statistics(0.5, 0.02), plan(Join((Join((0, 2)), 1)), 1))
    now = replace(advisor(), log=known)
    now, _ = now.advise(Situation(0, statistics(0.5, 0.02)), "((a b) c)")
    _, advice = now.advise(Situation(1, statistics(0.5, 0.02)), "((a b) c)")
    assert advice.decision.numbers["new_memory"] > advice.decision.numbers["memory"]


def test_a_logged_plan_that_no_longer_fits_is_not_taken() -> None:
    logged = plan(Join((Join((0, 2)), 1)), 1)
    known = QueryLog().remember(statistics(0.5, 0.02), logged)
    now = replace(advisor(memory=5000), log=known)
    now, _ = now.advise(Situation(0, statistics(0.5, 0.02)), "((a b) c)")
    now, advice = now.advise(Situation(1, statistics(0.5, 0.02)), "((a b) c)")
    assert advice.plan is not None
    assert advice.plan.tree == "(a (b c))"


def test_if_nothing_fits_an_exhaustive_advisor_says_so() -> None:
    now = replace(advisor(memory=1), optimizer="exhaustive")
    now, _ = now.advise(Situation(0, statistics(0.5, 0.02)), "(a b c)")
    _, advice = now.advise(Situation(1, statistics(0.5, 0.02)), "(a b c)")
    assert advice.plan is None
    assert advice.decision.reason == "no plan keeps both budgets"


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_if_no_plan_has_cpu_enough_the_one_with_little_of_it_is_still_better(
    optimizer: str,
) -> None:
    known = statistics(0.5, 0.02)
    cheap, dear = (advisor().price(known, tree).cpu for tree in ("(a (b c))", "((a b) c)"))
    assert cheap < 0.8 * dear
    now = replace(advisor(cpu=cheap / 2), optimizer=optimizer)
    now, _ = now.advise(Situation(0, known), "((a b) c)")
    now, advice = now.advise(Situation(1, known), "((a b) c)")
    assert advice.plan is not None
    assert advice.plan.cpu <= cheap
    assert not advice.plan.qualified
    now, _ = now.advise(Situation(2, known), advice.plan.tree, advice.plan.orders)
    _, again = now.advise(Situation(3, known), advice.plan.tree, advice.plan.orders)
    assert again.plan is None, "there is none to prefer to it"


def test_load_alone_does_not_move_a_data_driven_advisor() -> None:
    now = advisor()
    full = Load(Measure.exact(99), 100, Measure.exact(1e9))
    for at in range(5):
        now, advice = now.advise(Situation(at, statistics(0.02, 0.5), full), "((a b) c)")
        assert advice.plan is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: Hysteresis(gain=2),
        lambda: Hysteresis(rest_ms=math.nan),
        lambda: QueryLog(tolerance=-1),
        lambda: QueryLog(capacity=-1),
        lambda: replace(advisor(), optimizer="best"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: type) -> None:
    with pytest.raises(BraidError) as caught:
        make()
    assert caught.value.hint
