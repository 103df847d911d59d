"""Several advisors who agree on few plans: each decides for itself, but knows of the others.

Every plan that somebody has is a tree that all workers carry. So one who changes takes a plan
that others have or change to, unless its own is clearly better. And whoever changes is a cue
for the others: what has changed for one has often changed for all, and then all change at once.
There is room for so many plans at once; who finds none chooses among those of the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from braid.optimize.timing.contract import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.optimize.timing.advisor import Advice, Advisor
    from braid.optimize.timing.statistics import Situation

_ALONG = Decision(True, "others change their plans")


@dataclass(frozen=True)
class UnitView:
    """One who decides: its advisor, its situation, and the plan that it has now."""

    advisor: Advisor
    situation: Situation
    tree: str
    orders: str = ""

    @property
    def plan(self) -> tuple[str, str]:
        """The plan that it has, as others may take it."""
        return self.tree, self.orders


def agree_on_plans(
    voices: Sequence[UnitView], most_plans: float = math.inf
) -> dict[int, tuple[Advisor, Advice]]:
    """By voice, the advisor to ask next time, and what to do; in the order of their turns.

    Those whose triggers have led to a change go first, the one with the most to do before the
    others; then those who may go along. All that they have and change to are `most_plans`.
    """
    first = [each.advisor.advise(each.situation, *each.plan) for each in voices]
    answers: dict[int, tuple[Advisor, Advice]] = {}
    taken: list[tuple[str, str]] = []
    for number in sorted(range(len(voices)), key=lambda each: _turn(first[each][1])):
        voice, answer = voices[number], first[number]
        there = taken if answer[1].plan is None else [*taken, *(each.plan for each in voices)]
        others = [plan for plan in dict.fromkeys(there) if plan != voice.plan]
        if others:
            answer = _considered(voice, answer, others)
        plans = dict.fromkeys([*taken, *(each.plan for each in voices)])
        if len(plans) >= most_plans and _plan_of(answer[1]) not in {None, *plans}:
            answer = _without_own(voice, answer, [each for each in plans if each != voice.plan])
        answers[number] = answer
        plan = answer[1].plan
        if plan is not None:
            taken.append((plan.tree, plan.orders))
    return answers


def _turn(advice: Advice) -> tuple[bool, float]:
    return advice.plan is None, 0.0 if advice.current is None else -advice.current.cpu


def _plan_of(advice: Advice) -> tuple[str, str] | None:
    return None if advice.plan is None else (advice.plan.tree, advice.plan.orders)


def _without_own(
    voice: UnitView, answer: tuple[Advisor, Advice], others: Sequence[tuple[str, str]]
) -> tuple[Advisor, Advice]:
    """What to do if there is no room for one more plan: take one of the others', or nothing."""
    advisor, advice = answer
    assert advice.cue is not None, "who changes knows why"
    cue = replace(advice.cue, reason=f"{advice.cue.reason}, no room for one more plan")
    asked = replace(advisor, hysteresis=voice.advisor.hysteresis)
    return asked.consider(voice.situation, *voice.plan, others, cue, finds=False)


def _considered(
    voice: UnitView, answer: tuple[Advisor, Advice], others: Sequence[tuple[str, str]]
) -> tuple[Advisor, Advice]:
    """What to do in sight of others' plans; if nothing, it is as if nobody had asked."""
    advisor, advice = answer
    # That there is something to change was hysteresis' word on its own plan.
    asked = replace(advisor, hysteresis=voice.advisor.hysteresis)
    if advice.plan is None or advice.cue is None:
        found = asked.consider(voice.situation, *voice.plan, others, _ALONG)
    else:
        own = advice.plan.tree, advice.plan.orders
        found = asked.consider(voice.situation, *voice.plan, [*others, own], advice.cue)
    return answer if found[1].plan is None else found
