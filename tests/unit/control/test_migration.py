"""When a plan changes, and how many groups a batch fills for it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from braid.control.migration import (
    AHEAD,
    UNPRICED,
    Migration,
    PlanChangeRequest,
    Pricing,
)
from braid.events import Migrated
from braid.optimize import IndexProbes
from braid.record.enact import RecordDraft, enact_all
from braid.record.next_commit import commit_before_first
from braid.record.plan_change import Way, begun
from tests.oracle.steady import CLIQUE

if TYPE_CHECKING:
    from braid.record.commit import Commit

OLD, NEW, NEWER = "((a b) (c d))", "(((a b) c) d)", "(a b c d)"
GROUPS, PAUSE_MS, USUAL_MS = 512, 100.0, 40
PLAN = replace(CLIQUE.plan(dict.fromkeys(CLIQUE.keys, 3), OLD), groups=GROUPS)


class Course:
    """A run's changes of plan, and batches that do what they are asked to."""

    def __init__(self, pricing: Pricing = UNPRICED) -> None:
        self.migration, self.pricing = Migration(1, PAUSE_MS), pricing
        self.draft = RecordDraft(commit_before_first(PLAN, workers=1), PLAN)
        self.steps: list[tuple[str, str]] = []
        self.reasons: list[str] = []

    @property
    def commit(self) -> Commit:
        return self.draft.commit

    def ask(self, request: PlanChangeRequest) -> None:
        self.migration = self.migration.asked(self.migration.checked(PLAN.query, request))

    def batch(self, elapsed_ms: int) -> int:
        """Let a batch take so long; how many groups it has filled."""
        change, filled = self.commit.change, 0
        if change is not None:
            filled = change.filling - change.filled
            change = replace(change, filled=change.filling)
        commit = replace(self.commit, batch=self.commit.batch + 1, change=change)
        self.draft = replace(self.draft, commit=commit)
        decided = self.migration.observe(self.draft, elapsed_ms, self.pricing)
        self.migration = decided.next
        for event in decided.events:
            assert isinstance(event, Migrated)
            self.steps.append((event.step, event.new))
            self.reasons.append(event.reason)
        self.draft = enact_all(self.draft, decided.commands)
        return filled


YEARS_US, SECOND_US = 300 * 365 * 86_400_000_000, 1_000_000


def reached(course: Course, *seconds: float | None) -> None:
    newest = tuple(None if s is None else round(s * SECOND_US) for s in seconds)
    commit = replace(course.commit, newest_us=newest)
    course.draft = replace(course.draft, commit=commit)


def test_a_row_from_the_far_future_keeps_a_parallel_track_from_beginning() -> None:
    course = Course()
    reached(course, 10, 11 + YEARS_US / SECOND_US, 12, 9)
    course.ask(PlanChangeRequest(NEW, "parallel-track"))
    course.batch(USUAL_MS)
    assert course.steps == [("refused", NEW)]
    assert course.commit.change is None
    assert "stream b is at 2269" in course.reasons[0]
    assert "stream d at 1970-01-01T00:00:09" in course.reasons[0]


@pytest.mark.parametrize(
    ("began", "later"),
    [
        ((10, 11, 12, 9), (10, 4_000, 4_000, 4_000)),  # a brings no more rows
        ((None, 20_000, None, None), (10, 20_000, 10, 10)),  # b was far ahead, alone
    ],
)
def test_a_parallel_track_that_would_last_too_long_is_given_up(
    began: tuple[float | None, ...], later: tuple[float, ...]
) -> None:
    course = Course()
    reached(course, *began)
    course.ask(PlanChangeRequest(NEW, "parallel-track"))
    course.batch(USUAL_MS)
    assert course.steps == [("start", NEW)]
    reached(course, *later)
    course.batch(USUAL_MS)
    assert course.steps[1:] == [("given up", NEW)]
    assert course.commit.change is None
    assert course.draft.plan.texts == course.commit.plans == (OLD,)
    assert "stream a is at" in course.reasons[1] or "stream b is at" in course.reasons[1]


def test_the_boundary_of_a_track_goes_by_each_streams_own_window() -> None:
    windows = {"a": 1, "b": 2, "c": 50, "d": 1}
    plan = CLIQUE.plan(windows, OLD)
    first = commit_before_first(plan, workers=1)
    newest = tuple(second * SECOND_US for second in (100, 90, 60, 100))
    start = begun(replace(first, newest_us=newest), plan, NEW, Way.PARALLEL_TRACK)
    assert start.commit.change is not None
    assert start.commit.change.boundary_us == (60 + 50) * SECOND_US + 1


@pytest.mark.parametrize("ms_per_group", [0.1, 1.0, 10.0])
def test_a_batch_fills_as_many_groups_as_the_pause_has_room_for(ms_per_group: float) -> None:
    course = Course()
    course.ask(PlanChangeRequest(NEW))
    course.batch(USUAL_MS)
    filled = []
    while course.commit.change is not None:
        groups = course.commit.change.filling - course.commit.change.filled
        filled.append(course.batch(round(USUAL_MS + groups * ms_per_group)))
    assert sum(filled) == GROUPS
    first, *others = filled
    assert first == GROUPS / 16, "nobody knows yet how long they take"
    room = PAUSE_MS / ms_per_group
    assert all(groups <= room for groups in others)
    assert others[:-1] == [min(room, 4 * first)] * (len(others) - 1)


@pytest.mark.parametrize(("second", "is_made_at_once"), [(1e-8, True), (1e-3, False)])
def test_what_is_made_within_the_pause_is_made_at_once_before_rows_come(
    second: float, is_made_at_once: bool
) -> None:
    graph = CLIQUE.graph(dict.fromkeys(CLIQUE.keys, 3))
    costs = IndexProbes(*(second,) * 5)
    course = Course(Pricing(cast("Any", SimpleNamespace(graph=graph)), costs))
    course.batch(USUAL_MS)
    request = PlanChangeRequest(NEW, batch=course.commit.batch + AHEAD)
    course.ask(request)
    assert course.migration.is_wanted(course.commit), "nothing else is to begin"
    expected = course.migration.after_next(course.draft, course.pricing)
    course.batch(USUAL_MS)
    plans = [(course.commit.assignments, course.draft.plan)]
    assert course.migration.fills_at_once(course.draft) == is_made_at_once
    if is_made_at_once:
        assert course.batch(USUAL_MS) == GROUPS
        assert course.commit.change is None
        plans.append((course.commit.assignments, course.draft.plan))
    assert [(each.commit.assignments, each.plan) for each in expected] == plans


def test_a_change_waits_for_the_one_before_it() -> None:
    course = Course()
    course.ask(PlanChangeRequest(NEW))
    course.ask(PlanChangeRequest(NEWER))
    for _ in range(8):
        course.batch(USUAL_MS)
    assert [step for step in course.steps if step[0] != "fill"] == [
        ("start", NEW),
        ("end", NEW),
        ("start", NEWER),
        ("end", NEWER),
    ]
    assert course.draft.plan.texts == (NEWER,)


def test_what_a_change_takes_is_foreseen_in_the_cheapest_way_that_there_is() -> None:
    course, costs = Course(), IndexProbes(*(1e-3,) * 5)
    course.batch(USUAL_MS)
    graph = CLIQUE.graph(dict.fromkeys(CLIQUE.keys, 3))
    asked = course.draft, (0,), costs, graph
    taken_s = course.migration.foreseen_s(*asked, NEW)
    assert taken_s is not None
    assert taken_s > 0
    assert course.migration.foreseen_s(*asked, OLD) is None, "it is the plan already"
    waiting = replace(course.commit, waiting=(("a row that waits",),))
    assert (
        course.migration.foreseen_s(replace(course.draft, commit=waiting), *asked[1:], NEW)
        == taken_s
    )
