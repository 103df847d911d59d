"""Several who decide about their plans, each by its own statistics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from braid.optimize.timing import (
    Advice,
    Advisor,
    DataDriven,
    DataStatistics,
    Hysteresis,
    Measure,
    Situation,
    UnitView,
    agree_on_plans,
)

AB_FIRST, BC_FIRST, AC_FIRST = "((a b) c)", "(a (b c))", "((a c) b)"
LONG_MS = 1000.0
FIRES = DataDriven(interval_ms=0, optimized_ms=0.0)
SLEEPS = DataDriven(interval_ms=LONG_MS, optimized_ms=0.0)


def statistics(ab: float, bc: float, rate: float = 20.0) -> DataStatistics:
    return DataStatistics(
        {name: Measure.exact(rate) for name in "abc"},
        {("a", "b"): Measure.exact(ab), ("b", "c"): Measure.exact(bc)},
    )


def voice(
    known: DataStatistics, tree: str, trigger: DataDriven = FIRES, rest_ms: float = 0.0
) -> UnitView:
    advisor = Advisor(
        trigger=trigger,
        window=15.0,
        optimizer="bjtree-init",
        hysteresis=Hysteresis(rest_ms=rest_ms),
    )
    return UnitView(advisor, Situation(1.0, known), tree)


def advices(*voices: UnitView) -> list[Advice]:
    answers = agree_on_plans(voices)
    return [answers[number][1] for number in range(len(voices))]


def trees(*voices: UnitView) -> list[str | None]:
    return [None if each.plan is None else each.plan.tree for each in advices(*voices)]


AB, BC = statistics(0.02, 0.5), statistics(0.5, 0.02)


def test_one_alone_gets_what_its_advisor_says() -> None:
    one = voice(BC, AB_FIRST)
    answer = one.advisor.advise(one.situation, one.tree)
    assert answer[1].plan is not None
    assert agree_on_plans([one]) == {0: answer}
    assert agree_on_plans([]) == {}


def test_each_gets_the_plan_that_is_best_for_itself() -> None:
    assert trees(voice(AB, BC_FIRST), voice(BC, AB_FIRST)) == [AB_FIRST, BC_FIRST]
    assert trees(voice(AB, AB_FIRST), voice(BC, AB_FIRST)) == [None, BC_FIRST]


def test_others_go_along_without_their_own_triggers_if_they_gain_as_well() -> None:
    asleep = [voice(BC, AB_FIRST, SLEEPS), voice(AB, AB_FIRST, SLEEPS)]
    assert trees(*asleep) == [None, None], "nobody's time has come"
    first, second, third = advices(voice(BC, AB_FIRST), *asleep)
    assert first.plan is not None
    assert second.plan is not None
    assert first.plan.text == second.plan.text == BC_FIRST
    assert second.decision.reason == "others change their plans: another saves CPU"
    assert second.decision.numbers["new_cpu"] <= 0.8 * second.decision.numbers["cpu"]
    assert third.plan is None
    assert third.current is None, "nothing is told of those who stay and were not asked"


def test_one_who_is_led_to_look_takes_what_is_clearly_better_for_itself() -> None:
    assert trees(voice(AB, AC_FIRST), voice(BC, AC_FIRST, SLEEPS)) == [AB_FIRST, BC_FIRST]


@pytest.mark.parametrize("turn", [1, -1])
def test_plans_that_are_about_as_good_become_one_that_of_the_busiest(turn: int) -> None:
    busy, idle = statistics(0.020, 0.021, rate=40), statistics(0.021, 0.020, rate=20)
    voices = [voice(busy, AC_FIRST), voice(idle, AC_FIRST)][::turn]
    assert [trees(each) for each in voices] == [[AB_FIRST], [BC_FIRST]][::turn], "alone"
    assert trees(*voices) == [AB_FIRST, AB_FIRST]
    assert list(agree_on_plans(voices)) == [0, 1][::turn]


def test_a_plan_that_others_have_will_do() -> None:
    near = statistics(0.021, 0.020)
    assert trees(voice(near, AC_FIRST)) == [BC_FIRST]
    assert trees(voice(AB, AB_FIRST), voice(near, AC_FIRST)) == [None, AB_FIRST]


def test_each_rests_after_its_own_changes_and_not_after_those_of_others() -> None:
    voices = [voice(BC, AB_FIRST, rest_ms=100), voice(AB, AB_FIRST, rest_ms=100)]
    answers = agree_on_plans(voices)
    assert answers[0][1].plan is not None
    later = [
        UnitView(answers[number][0], Situation(50.0, known), tree)
        for number, (known, tree) in enumerate([(AB, BC_FIRST), (BC, AB_FIRST)])
    ]
    first, second = advices(*later)
    assert first.plan is None
    assert "too recent" in first.decision.reason
    assert second.plan is not None


def test_going_along_counts_as_a_change() -> None:
    voices = [voice(BC, AB_FIRST, rest_ms=100), voice(BC, AB_FIRST, SLEEPS, rest_ms=100)]
    advisor = agree_on_plans(voices)[1][0]
    assert advisor.hysteresis.changed_ms == 1.0
    awake = replace(advisor, trigger=FIRES)
    advice = awake.advise(Situation(50.0, AB), BC_FIRST)[1]
    assert advice.plan is None
    assert "too recent" in advice.decision.reason


def test_where_there_is_no_room_for_one_more_plan_those_of_others_must_do() -> None:
    nearly = statistics(0.02, 0.05)
    voices = [voice(AB, BC_FIRST), voice(nearly, AC_FIRST), voice(BC, AB_FIRST, SLEEPS)]
    assert trees(voice(nearly, AC_FIRST)) == [AB_FIRST]
    three = agree_on_plans(voices, most_plans=3)
    assert three[1][1].plan is not None
    assert three[1][1].plan.tree == AB_FIRST, "it is there"
    alone = [voice(AB, BC_FIRST), voice(BC, BC_FIRST, SLEEPS)]
    assert trees(*alone)[0] == AB_FIRST
    advisor, advice = agree_on_plans(alone, most_plans=1)[0]
    assert advice.plan is None
    assert advice.decision.reason.count("no room for one more plan") == 1
    assert advisor.hysteresis.changed_ms is alone[0].advisor.hysteresis.changed_ms
