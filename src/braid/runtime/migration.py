"""Changing the plan of a running query: `braid.migrate` knows how, here is when.

One change at a time; others wait for it. A change begins between two batches in which nothing
moves, waits or is owed, for all of that is named by the places that it has in a plan: so once
one is wanted, no group is sent away or pushed out by itself any more, and what is owed is made.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from braid.events import Migrated
from braid.migrate import (
    Circumstances,
    Way,
    begun,
    cost_of_change,
    costs_of_plans,
    ended,
    given_up,
    hopelessness,
    is_over,
    resumed,
    way_of,
)
from braid.model.checks import require_known
from braid.model.errors import BraidError
from braid.model.failpoints import reach
from braid.plan.shape import read_shape, show_plans, show_shape
from braid.runtime.calibrate import measure_costs
from braid.runtime.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from braid.join.plan import JoinPlan
    from braid.migrate import ChangeCost, Start
    from braid.model.join_graph import JoinGraph
    from braid.model.query import Query
    from braid.optimize.cost_model import IndexProbes
    from braid.runtime.observation import Observation
    from braid.state.change import Change
    from braid.state.commit import Commit

AUTO = "auto"
WAYS = (AUTO, *(way.value for way in Way))
AHEAD = 2
"""The next batch is planned already; the one after it is planned while the next one runs."""
_WHEN = re.compile(r"\s*(?P<batch>\d+)\s*(@\s*(?P<workers>\d+(\s*,\s*\d+)*)\s*)?")


@dataclass(frozen=True, slots=True)
class Wish:
    """Another plan, from a batch on, and how to get there."""

    plan: str
    way: str = AUTO
    reason: str = "asked for"
    batch: int = 0
    workers: tuple[int, ...] = ()  # if not of all


@dataclass(slots=True)
class Migration:
    """All changes of plan of a run; a batch takes at most about `pause_ms` longer for one."""

    plan: JoinPlan
    workers: int
    pause_ms: float
    way: str = AUTO
    _wishes: list[Wish] = field(default_factory=list, init=False)
    _reason: str = field(default="", init=False)
    _usual_ms: float = field(default=0.0, init=False)
    _slices: Slices | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Refuse a way that there is not, whether a change is asked for or not."""
        require_known("way to change a plan", self.way, WAYS)

    def ask(self, wish: Wish) -> None:
        """Have the plan changed, once no other change is under way."""
        if wish.way == AUTO:
            _costs_of(self.plan.query)  # by who asks, and not between two batches
        aliases = [stream.alias for stream in self.plan.query.streams]
        text = show_shape(read_shape(self.plan.query, wish.plan), aliases)
        strangers = sorted(set(wish.workers) - set(range(self.workers)))
        if strangers:
            raise BraidError(
                f"there is no worker {strangers[0]}",
                hint=f"workers have the numbers 0 to {self.workers - 1}",
            )
        some = () if len(set(wish.workers)) == self.workers else wish.workers
        self._wishes.append(replace(wish, plan=text, workers=some))
        self._wishes.sort(key=lambda each: each.batch)

    def resume(self, commit: Commit) -> Commit:
        """Go on from a record; of wishes for batches before, only the last is still one."""
        past = [wish for wish in self._wishes if wish.batch <= commit.batch]
        done = past if past and past[-1].plan == commit.plans[-1] else past[:-1]
        self._wishes = [wish for wish in self._wishes if wish not in done]
        commit, self.plan = resumed(commit, self.plan, self.workers)
        return commit

    def change_to(self, plan: str, workers: tuple[int, ...] = ()) -> None:
        """Have the plan changed in the way that the run was started with."""
        self.ask(Wish(plan, self.way, workers=workers))

    def is_wanted(self, commit: Commit) -> bool:
        """Whether the plan changes, or is about to."""
        return commit.change is not None or self._due(commit, AHEAD) is not None

    def _due(self, commit: Commit, batches: int = 1) -> Wish | None:
        """The next change that is to begin within so many batches."""
        due = (wish for wish in self._wishes if wish.batch <= commit.batch + batches)
        return next(due, None)

    def fills_at_once(self, commit: Commit) -> bool:
        """Whether all that a new plan lacks is to be made before rows come.

        They are joined by that plan then, and never by the old one beside it.
        """
        change = commit.change
        return change is not None and not change.filled and self._completes(change)

    def _completes(self, change: Change) -> bool:
        """Whether the next batch makes the last states that a new plan lacks."""
        return change.fills and change.filling >= self.plan.groups

    def after_next(
        self, commit: Commit, observation: Observation
    ) -> list[tuple[Commit, JoinPlan]]:
        """What the batch after the next one will start from, as far as that can be told now.

        Only the plan and the places of groups count of it. If states are made at once before
        it, that comes first.
        """
        change = commit.change
        if change is not None:
            is_last = self._completes(change)
            return [ended(commit, self.plan) if is_last else (commit, self.plan)]
        wish = None if _is_in_debt(commit) else self._due(commit, AHEAD)
        starts = None if wish is None else self._starts(commit, wish, observation)
        if starts is None or starts.best is None:
            return [(commit, self.plan)]
        both = starts.best.both
        commit = self._with_slice(starts.best.commit, self._slices_of(starts))
        if self.fills_at_once(commit):
            return [(commit, both), ended(commit, both)]
        return [ended(commit, both) if is_over(commit, both) else (commit, both)]

    def after(
        self, commit: Commit, elapsed_ms: float, observation: Observation
    ) -> Iterator[Commit | Migrated]:
        """What the next batch starts from, by which plan, and what that means."""
        if commit.change is not None:
            yield from self._carried_on(commit, elapsed_ms)
            return
        self._usual_ms = elapsed_ms
        wish = self._due(commit)
        if wish is None or _is_in_debt(commit):
            return
        self._wishes.remove(wish)
        yield from self._begin(commit, wish, observation)

    def _starts(self, commit: Commit, wish: Wish, observation: Observation) -> _Starts:
        starts = self._begun(commit, wish.plan, wish.way, wish.workers)
        graph = observation.graph
        if wish.way != AUTO or graph is None:
            return _Starts(starts)
        costs, possible = _costs_of(observation.query), [s for s in starts if not s.obstacle]
        around = self._circumstances(commit)
        return _Starts(
            starts,
            {each.way: cost_of_change(each, graph, costs, around) for each in possible},
            costs_of_plans(possible[0], graph, costs) if possible else {},
        )

    def _begun(
        self, commit: Commit, plan: str, way: str, workers: Collection[int]
    ) -> list[Start]:
        """How a change would begin, in each way that may be taken."""
        ways = list(Way) if way == AUTO else [Way(way)]
        return [begun(commit, self.plan, plan, each, workers) for each in ways]

    def foreseen_s(
        self,
        commit: Commit,
        workers: Collection[int],
        costs: IndexProbes,
        graph: JoinGraph,
        plan: str,
    ) -> float | None:
        """The seconds of a core that a change of some workers takes, in the cheapest way.

        What moves, waits or is owed now will be done by then. None if there is no way, of which
        is told where it is tried.
        """
        nothing: tuple[tuple[Any, ...], ...] = ((),) * commit.workers
        at_rest = replace(commit, moves=(), generations=nothing, waiting=nothing)
        some = () if len(workers) == commit.workers else workers
        starts, around = self._begun(at_rest, plan, self.way, some), self._circumstances(commit)
        possible = (each for each in starts if not each.obstacle)
        taken = (cost_of_change(each, graph, costs, around).takes for each in possible)
        return min(taken, default=None)

    def _circumstances(self, commit: Commit) -> Circumstances:
        newest = [moment for moment in commit.newest_us if moment is not None]
        return Circumstances(
            lateness=self.plan.lateness_us / 1_000_000,
            skew=(max(newest) - min(newest)) / 1_000_000 if newest else 0.0,
            filling=self._filling_s,
        )

    def _filling_s(self, making_s: float) -> float:
        """How long batches fill states that take so long to make, if not all at once."""
        foreseen_ms = 1000 * making_s / self.workers
        groups = Slices.of(self.plan.groups, self.pause_ms, self._usual_ms, foreseen_ms).groups
        batches = math.ceil(self.plan.groups / groups)
        return 0.0 if batches == 1 else batches * self._usual_ms / 1000

    def _begin(
        self, commit: Commit, wish: Wish, observation: Observation
    ) -> Iterator[Commit | Migrated]:
        old, starts = show_plans(self.plan.texts), self._starts(commit, wish, observation)
        start = starts.best
        if start is None:
            where = commit.batch, "refused", wish.way, old
            yield Migrated(*where, wish.plan, starts.obstacle, {}, wish.workers)
            return
        self.plan, self._reason = start.both, wish.reason
        self._slices = self._slices_of(starts)
        numbers = {"states_made": float(len(start.fresh))}
        for way, cost in starts.costs.items():
            numbers |= {f"{way.value}_s": cost.takes, f"{way.value}_lasts_s": cost.lasts}
        numbers |= starts.plans
        yield self._step(start.commit, "start", numbers)
        reach("change begun", commit.batch + 1)
        if is_over(start.commit, self.plan):
            yield from self._end(start.commit)
        else:
            yield self._with_slice(start.commit, self._slices)

    def _carried_on(self, commit: Commit, elapsed_ms: float) -> Iterator[Commit | Migrated]:
        if is_over(commit, self.plan):
            yield from self._end(commit)
            return
        if reason := hopelessness(commit, self.plan):
            yield replace(self._step(commit, "given up", {}), reason=reason)
            commit, self.plan = given_up(commit, self.plan)
            yield commit
            return
        assert commit.change is not None, "asked for before"
        if self._slices is None:  # the batch was another run's
            self._slices = Slices.of(self.plan.groups, self.pause_ms, self._usual_ms)
        elif commit.change.fills:
            self._slices.learn(elapsed_ms)
        if commit.change.fills:
            yield self._step(commit, "fill", {"groups": commit.change.filled})
        yield self._with_slice(commit, self._slices)

    def _slices_of(self, starts: _Starts) -> Slices:
        """How much is made at a time, if a change begins in the best of some ways."""
        assert starts.best is not None, "or there is no change"
        cost = starts.costs.get(starts.best.way)
        foreseen_ms = None if cost is None else 1000 * cost.making / self.workers
        return Slices.of(self.plan.groups, self.pause_ms, self._usual_ms, foreseen_ms)

    def _with_slice(self, commit: Commit, slices: Slices) -> Commit:
        """A record whose next batch fills some more groups."""
        assert commit.change is not None, "asked for before"
        if not commit.change.fills:
            return commit
        filling = min(self.plan.groups, commit.change.filled + round(slices.groups))
        return replace(commit, change=replace(commit.change, filling=filling))

    def _end(self, commit: Commit) -> Iterator[Commit | Migrated]:
        yield self._step(commit, "end", {})
        finished, self.plan = ended(commit, self.plan)
        reach("change ended", commit.batch + 1)
        yield finished

    def _step(self, commit: Commit, step: str, numbers: dict[str, float]) -> Migrated:
        change, texts = commit.change, self.plan.texts
        assert change is not None, "asked only of a change"
        owners = np.array(commit.assignments[self.plan.rounds.homes[0]])
        some = () if change.groups is None else np.unique(owners[change.marks(len(owners))])
        return Migrated(
            batch=commit.batch,
            step=step,
            way=way_of(change).value,
            old=show_plans(texts[:-1]),
            new=texts[-1],
            reason=self._reason,
            numbers=numbers,
            workers=tuple(map(int, some)),
        )


@dataclass(frozen=True, slots=True)
class _Starts:
    """A change in all ways that may be taken, and what those that can be cost, if known.

    And what both plans cost, from then on.
    """

    starts: Sequence[Start]
    costs: Mapping[Way, ChangeCost] = field(default_factory=dict)
    plans: Mapping[str, float] = field(default_factory=dict)

    @property
    def best(self) -> Start | None:
        """The one that costs least, of those without an obstacle."""
        possible = (each for each in self.starts if not each.obstacle)
        return min(possible, key=self._takes, default=None)

    def _takes(self, start: Start) -> float:
        return self.costs[start.way].takes if start.way in self.costs else 0.0

    @property
    def obstacle(self) -> str:
        """Why no way can be taken."""
        reasons = {each.obstacle: each.way.value for each in self.starts}
        if len(reasons) == 1:
            return self.starts[0].obstacle
        return "; ".join(f"by {way}: {reason}" for reason, way in reasons.items())


def _is_in_debt(commit: Commit) -> bool:
    """Whether something moves, waits or is owed, which a change of plan has to wait for."""
    return commit.owes or any(commit.generations)


def _costs_of(query: Query) -> IndexProbes:
    return measure_costs(several_keys=len(query.keys) > 1)


def parse_wish(text: str, way: str) -> Wish:
    """Read "BATCH:PLAN", or "BATCH@WORKER,…:PLAN".

    >>> parse_wish("12:((a b) c)", "auto")
    Wish(plan='((a b) c)', way='auto', reason='asked for', batch=12, workers=())
    >>> parse_wish("12@0,3:((a b) c)", "auto").workers
    (0, 3)
    """
    when, _, plan = text.partition(":")
    found = _WHEN.fullmatch(when)
    if found is None or not plan:
        raise BraidError(
            f"cannot read {text!r} as a change of plan",
            hint='write a batch and a plan, such as "12:((a b) c)", or "12@0,3:((a b) c)" for '
            "some workers alone",
        )
    workers = tuple(map(int, found["workers"].split(","))) if found["workers"] else ()
    return Wish(plan.strip(), way, batch=int(found["batch"]), workers=workers)
