"""Workers that find plans of their own, by what each of them measures; without Spark."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from braid import cql
from braid.control.migration import Migration
from braid.control.observation import Observation
from braid.control.replanning import replanning_of
from braid.events import Migrated, Replanned
from braid.model.expression import Column
from braid.optimize.cost_model import IndexProbes
from braid.plan.join_plan import JoinPlan, make_plan
from tests.driven import Driven
from tests.oracle.answers import counted, oracle
from tests.oracle.uneven import (
    AB_FIRST,
    APART,
    BC_FIRST,
    GROUPS,
    QUERY,
    SCHEMA,
    STREAMS,
    SWITCHING,
    WORKERS,
    Uneven,
)
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from braid.control.control import Control
    from braid.events import Event
    from braid.record.commit import Commit
    from braid.state.groups import Ranges

BOUND = cql.bind(QUERY, dict.fromkeys(STREAMS, SCHEMA), event_time="ts")
AB, BC = "((a b) c)", "(a (b c))"
SOME, EVERY = ((0, 2),), ((0, GROUPS // 2),)
EVERY_PAIR = "(a b c); a: b c; b: c a; c: a b"
"""Of each pair, some rows ask before they have met others."""


def plan_of(text: str) -> JoinPlan:
    types = {Column(n, f.name): f.type for n in range(len(STREAMS)) for f in SCHEMA}
    return make_plan(BOUND, types, "ts", groups=GROUPS, lateness_us=0, plans=[text])


class Course:
    """A run with an optimizer, a second a batch."""

    def __init__(self, streams: Uneven, text: str, way: str = "auto") -> None:
        self.streams, self.plan = streams, plan_of(text)
        migration, observation = Migration(WORKERS, 60_000.0, way), Observation(BOUND)
        # Whatever machine this is, a core does a million of each in a second. Without a budget
        # of cores: how busy workers are depends on the machine.
        costs = IndexProbes(*[1e-6] * 5)
        asked = self.plan, migration, lambda: costs, observation
        found = replanning_of(*asked, "exhaustive", "data", None, cores=math.inf)
        assert found is not None
        self.control = migration, found, costs
        self.looks: list[Replanned] = []
        self.steps: list[Migrated] = []

    def _controlled(self, control: Control) -> Control:
        migration, replanning, costs = self.control
        return replace(control, migration=migration, replanning=replanning, costs=costs)

    def _follow(self, event: Event) -> None:
        if isinstance(event, Replanned):
            self.looks.append(event)
        elif isinstance(event, Migrated):
            self.steps.append(event)

    def run(self, seconds: int, moved: tuple[int, Ranges] | None = None) -> Commit:
        """The last record of so many seconds, all results of which are right.

        In some second, groups may move from the first to the second worker.
        """
        with quick_folder() as folder:
            engine = Driven(self.plan, folder, WORKERS, control=self._controlled)
            engine.engine.journal.listen(self._follow)
            for second in range(seconds):
                if moved is not None and second == moved[0]:
                    engine.move(0, moved[1], 0, 1)
                new = {n: self.streams.rows(name, second) for n, name in enumerate(STREAMS)}
                engine.batch(new)
                for move in engine.commit.moves:
                    engine.arrive(move, with_files=True)
            engine.checkpoint.close()
            found = counted(engine.all_results())
        whole = [
            pa.concat_tables(self.streams.rows(name, second) for second in range(seconds))
            for name in STREAMS
        ]
        assert found == counted(oracle(BOUND, whole, "ts"))
        return engine.commit

    def plans(self, commit: Commit) -> list[set[str]]:
        """By worker, the plans that its groups go through."""
        trees = commit.plan_of_group or (0,) * GROUPS
        owned = list(zip(commit.assignments[0], trees, strict=True))
        return [{commit.plans[t] for w, t in owned if w == worker} for worker in range(WORKERS)]

    @property
    def ends(self) -> list[tuple[str, tuple[int, ...]]]:
        """All changes: to which plan, of which workers."""
        return [(each.new, each.workers) for each in self.steps if each.step == "end"]


def test_workers_whose_rows_have_other_habits_get_other_plans() -> None:
    """All rows together give no reason for either: as many come of a as of c."""
    course = Course(APART, EVERY_PAIR)
    assert course.plans(course.run(10)) == [{AB}, {BC}]
    assert sorted(course.ends) == [(AB, (0,)), (BC, (1,))]
    chosen = {look.workers: look for look in course.looks if look.new is not None}
    assert {workers: look.new for workers, look in chosen.items()} == {(0,): AB, (1,): BC}
    for (worker,), look in chosen.items():
        rates = [rate.rows_per_second for rate in look.rates]
        assert rates == pytest.approx(APART.rates(worker, 0), rel=0.3)
        assert look.numbers["new_cpu"] <= 0.8 * look.numbers["cpu"]
        assert look.old == EVERY_PAIR


def test_one_worker_alone_changes_and_both_look_on() -> None:
    """The first has its plan from the beginning; then the second's rows change their habits."""
    streams = Uneven(lambda worker, second: BC_FIRST if worker and second < 12 else AB_FIRST)
    course = Course(streams, AB)
    assert course.plans(course.run(26)) == [{AB}, {AB}]
    assert course.ends == [(BC, (1,)), (AB, (1,))], "there, and back to what the other has"


def test_what_changes_for_all_is_one_change_of_all() -> None:
    course = Course(SWITCHING, AB)
    assert course.plans(course.run(22)) == [{BC}, {BC}]
    assert course.ends == [(BC, ())]
    told = [(look.workers, look.new) for look in course.looks if look.new is not None]
    assert sorted(told) == [((0,), BC), ((1,), BC)]


def test_groups_that_moved_keep_their_plan_until_their_worker_changes() -> None:
    """Then it is all of its groups that do."""
    streams = Uneven(
        lambda worker, second: AB_FIRST if second >= 12 else (AB_FIRST, BC_FIRST)[worker]
    )
    course = Course(streams, EVERY_PAIR)
    commit = course.run(11, (9, SOME))
    assert course.plans(commit) == [{AB}, {AB, BC}]
    course = Course(streams, EVERY_PAIR)
    assert course.plans(course.run(26, (9, SOME))) == [{AB}, {AB}]
    assert course.ends[-1] == (AB, (1,))


def test_a_worker_without_groups_has_no_say() -> None:
    course = Course(SWITCHING, AB)
    assert course.plans(course.run(24, (4, EVERY))) == [set(), {BC}]
    assert course.ends == [(BC, ())]
    assert {look.workers for look in course.looks if look.batch > 5} == {(1,)}


def test_along_a_parallel_track_all_go_together() -> None:
    course = Course(SWITCHING, AB, "parallel-track")
    assert course.plans(course.run(24)) == [{BC}, {BC}]
    assert {(look.workers, look.new) for look in course.looks if look.new} == {((), BC)}
