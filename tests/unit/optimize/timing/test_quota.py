"""Whether a change of plan is worth its own cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from braid.optimize.plan import Budget, Plan
from braid.optimize.timing import Advisor, DataDriven, Hysteresis, Situation
from braid.optimize.timing.contract import Decision
from braid.optimize.timing.quota import Quota
from tests.unit.optimize.timing.test_changes import AB, BC, plan, statistics

NOW, BETTER = plan(AB, 1.0), plan(BC, 0.5)
UNFIT: Plan = plan(AB, 0.5, qualified=False)


def test_a_change_is_refused_that_statistics_leave_no_time_to_pay_off() -> None:
    quota = Quota(first_ms=10_000, part=1.0)
    assert quota.weigh(4.9, NOW, BETTER).yes
    verdict = quota.weigh(5.0, NOW, BETTER)
    assert (verdict.yes, verdict.reason) == (
        False,
        "it would not pay off before statistics change again",
    )
    assert (verdict.numbers["change_s"], verdict.numbers["saved_s"]) == (5.0, 5.0)


def test_a_change_is_refused_that_takes_more_than_its_part_of_all_cores() -> None:
    quota = Quota(first_ms=10_000, cores=2)
    assert quota.weigh(2.0, NOW, BETTER).yes
    verdict = quota.weigh(2.1, NOW, BETTER)
    assert (verdict.yes, verdict.reason) == (False, "the change would take more than its quota")
    assert (verdict.numbers["change_s"], verdict.numbers["allowed_s"]) == (2.1, 2.0)
    assert not quota.after_search(0.5).weigh(2.0, NOW, BETTER).yes, "the search counts too"


def test_a_plan_that_misses_a_budget_is_left_though_no_cpu_is_saved() -> None:
    quota = Quota(first_ms=10_000)
    assert quota.weigh(1.0, UNFIT, NOW).yes
    assert not quota.weigh(1.1, UNFIT, NOW).yes


def test_the_time_that_statistics_last_is_learned_later_ones_counting_for_more() -> None:
    quota = Quota(first_ms=10_000)
    quota = quota.after_change(7_000)
    assert quota.horizon_s == 10, "one change has no interval"
    quota = quota.after_change(9_000)
    assert quota.horizon_s == 2
    assert quota.after_change(13_000).horizon_s == pytest.approx(2 + 0.3 * 2)


def test_a_search_that_takes_too_long_is_left_out() -> None:
    quota = Quota(first_ms=10_000)
    assert quota.after_search(1.0).may_search().yes
    assert not quota.after_search(1.1).may_search().yes


def asked(change_s: float | None, searched_s: float = 0.0) -> tuple[Advisor, Plan | None, str]:
    """What an advisor says about a better plan, that a change to takes so long."""
    advisor = Advisor(
        trigger=DataDriven(interval_ms=0, eager=True),
        window=15.0,
        optimizer="bjtree-init",
        hysteresis=Hysteresis(rest_ms=0),
        budget=Budget(),
        quota=Quota(first_ms=10_000),
        change_s=lambda graph, plan: change_s,
    )
    advisor, _ = advisor.advise(Situation(0, statistics(0.5, 0.02)), "((a b) c)")
    situation = Situation(1, statistics(0.5, 0.02), searched_s=searched_s)
    after, advice = advisor.advise(situation, "((a b) c)")
    return after, advice.plan, advice.decision.reason


def test_an_advisor_asks_what_a_change_costs() -> None:
    assert asked(0.5)[1] is not None
    assert asked(None)[1] is not None, "nobody knows"
    after, found, reason = asked(1.5)
    assert found is None
    assert "more than its quota" in reason
    assert after.hysteresis == replace(after.hysteresis, changed_ms=None), "no rest for nothing"


def test_an_advisor_does_not_search_for_longer_than_that_may_take() -> None:
    assert asked(0.0, searched_s=0.9)[1] is not None
    _, found, reason = asked(0.0, searched_s=1.1)
    assert found is None
    assert "the search would take more than its quota" in reason


def test_nor_does_it_on_the_cue_of_others() -> None:
    advisor, *_ = asked(0.0)
    along = Decision(True, "others change their plans")
    for searched_s, finds in ((0.9, True), (1.1, False)):
        situation = Situation(1, statistics(0.5, 0.02), searched_s=searched_s)
        _, advice = replace(advisor, hysteresis=Hysteresis(rest_ms=0)).consider(
            situation, "((a b) c)", "", [], along
        )
        assert (advice.plan is not None) == finds


def test_statistics_on_their_way_from_one_value_to_the_next_have_changed_once() -> None:
    advisor = Advisor(
        trigger=DataDriven(interval_ms=1000, threshold=0.5),
        window=15.0,
        quota=Quota(first_ms=10_000),
    )
    found = [0.02] * 3 + [0.05, 0.08, 0.1] + [0.1] * 3 + [0.3]  # changes at 3 and 9 seconds
    asked = 0
    for second, selectivity in enumerate(found):
        situation = Situation(1000.0 * second, statistics(selectivity, 0.02))
        advisor, advice = advisor.advise(situation, "((a b) c)")
        asked += advice.cue is not None
    assert asked == 5
    assert advisor.quota is not None
    assert advisor.quota.horizon_s == 6
