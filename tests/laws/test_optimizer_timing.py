"""Plans never thrash, however statistics swing."""

from __future__ import annotations

import itertools
import math
import os
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.optimize.plan import Budget
from braid.optimize.timing import (
    Advisor,
    DataDriven,
    DataStatistics,
    Hysteresis,
    Load,
    Measure,
    MemoryDriven,
    RefinedMemoryDriven,
    Situation,
    UnitView,
    agree_on_plans,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.optimize.timing import Trigger

LAW = settings(max_examples=5 * int(os.environ.get("BRAID_CASES", "1")), deadline=None)
REST_MS = 1000.0
BATCH_MS = 200.0

triggers: list[Callable[[], Trigger]] = [
    lambda: DataDriven(interval_ms=0, threshold=0.1, eager=True),
    lambda: MemoryDriven(high_water=0.0, interval_ms=0),
    lambda: RefinedMemoryDriven(high_water=0.0, interval_ms=0),
]
"""As nervous as can be: only hysteresis is in their way."""


def statistics(selectivities: tuple[float, ...]) -> DataStatistics:
    names = "abcde"[: len(selectivities) + 1]
    pairs = itertools.pairwise(names)
    return DataStatistics(
        {name: Measure.exact(20.0) for name in names},
        {pair: Measure.exact(s) for pair, s in zip(pairs, selectivities, strict=True)},
    )


def changes(
    advisor: Advisor, selectivities_at: Callable[[float], tuple[float, ...]], batches: int
) -> list[float]:
    """When the plan changes in a run of so many batches."""
    tree, changed = f"({' '.join('abcde'[: len(selectivities_at(0)) + 1])})", []
    for batch in range(batches):
        at = batch * BATCH_MS
        load = Load(Measure.exact(1), 1.0)
        situation = Situation(at, statistics(selectivities_at(at)), load)
        advisor, advice = advisor.advise(situation, tree)
        if advice.plan is not None:
            tree = advice.plan.tree
            changed.append(at)
    return changed


def make(trigger: Trigger, optimizer: str = "bjtree-init") -> Advisor:
    return Advisor(
        trigger=trigger,
        window=15.0,
        optimizer=optimizer,
        hysteresis=Hysteresis(rest_ms=REST_MS),
        budget=Budget(),
    )


@pytest.mark.parametrize("trigger", triggers)
@LAW
@given(
    period_ms=st.floats(2 * BATCH_MS, 3 * REST_MS),
    low=st.floats(0.0001, 0.0005),
    high=st.floats(0.3, 1.0),
)
def test_statistics_that_swing_fast_change_the_plan_only_a_logarithm_of_times(
    trigger: Callable[[], Trigger], period_ms: float, low: float, high: float
) -> None:
    """To and fro between two plans, each several times as good as the other in its turn."""

    def swinging(at: float) -> tuple[float, ...]:
        return (low, high) if at % (2 * period_ms) < period_ms else (high, low)

    batches = 300
    changed = changes(make(trigger()), swinging, batches)
    assert 2 <= len(changed) <= 2 + math.log2(batches * BATCH_MS / REST_MS)


@pytest.mark.parametrize("trigger", triggers)
@LAW
@given(seed=st.integers(0, 2**32), streams=st.integers(3, 5))
def test_whatever_happens_plans_rest_between_changes(
    trigger: Callable[[], Trigger], seed: int, streams: int
) -> None:
    random = Random(seed)
    calm = 0.0

    def jumping(at: float) -> tuple[float, ...]:
        nonlocal calm, current
        if at >= calm:
            calm = at + random.expovariate(1 / REST_MS)
            current = tuple(random.choice([0.0002, 0.01, 0.9]) for _ in range(streams - 1))
        return current

    current = (0.5,) * (streams - 1)
    batches = 200
    changed = changes(make(trigger(), "bjtree-init"), jumping, batches)
    assert all(later - earlier >= REST_MS for earlier, later in itertools.pairwise(changed))
    # One for every four rests, and those before the caution has grown.
    span = batches * BATCH_MS / REST_MS
    assert len(changed) <= 2 + math.log2(span) + span / 4


@pytest.mark.parametrize("trigger", triggers)
@LAW
@given(seed=st.integers(0, 2**32), count=st.integers(2, 4))
def test_whatever_happens_to_several_each_gains_by_its_changes_and_rests_between_them(
    trigger: Callable[[], Trigger], seed: int, count: int
) -> None:
    random = Random(seed)
    advisors, trees = [make(trigger())] * count, ["(a b c)"] * count
    changed: list[list[float]] = [[] for _ in range(count)]
    current = [(0.5, 0.5)] * count
    for batch in range(100):
        at = batch * BATCH_MS
        for number in range(count):
            if random.random() < BATCH_MS / REST_MS:
                current[number] = random.choice([*current, (0.0002, 0.9), (0.9, 0.0002)])
        load = Load(Measure.exact(1), 1.0)
        voices = [
            UnitView(advisors[number], Situation(at, statistics(known), load), trees[number])
            for number, known in enumerate(current)
        ]
        for number, (advisor, advice) in agree_on_plans(voices).items():
            advisors[number] = advisor
            if advice.plan is not None:
                numbers = advice.decision.numbers
                assert numbers["new_cpu"] <= 0.8 * numbers["cpu"]
                assert advice.plan.tree != trees[number]
                trees[number] = advice.plan.tree
                changed[number].append(at)
    for own in changed:
        assert all(later - earlier >= REST_MS for earlier, later in itertools.pairwise(own))


@pytest.mark.parametrize("trigger", triggers)
def test_a_change_that_stays_is_followed_once(trigger: Callable[[], Trigger]) -> None:
    def once(at: float) -> tuple[float, ...]:
        return (0.0002, 0.5) if at < 20 * REST_MS else (0.5, 0.0002)

    changed = changes(make(trigger()), once, 200)
    before = [at for at in changed if at < 20 * REST_MS]
    after = [at for at in changed if at >= 20 * REST_MS]
    assert len(before) <= 1
    assert len(after) == 1
    assert after[0] - 20 * REST_MS <= REST_MS
