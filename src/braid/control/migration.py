"""Changing the plan of a running query: `braid.record.plan_change` knows how, here is when.

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

from braid.control.change_cost import Circumstances, cost_of_change, costs_of_plans
from braid.control.decider import Decided
from braid.control.fill_pacer import FillPacer
from braid.events import Migrated
from braid.model.checks import require_known
from braid.model.errors import BraidError
from braid.plan.shape import read_shape, show_plans, show_shape
from braid.record.enact import (
    BeginChange,
    EndChange,
    FillUpTo,
    GiveUpChange,
    RecordDraft,
    enact,
)
from braid.record.plan_change import Way, begun, hopelessness, is_over, way_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from braid.control.change_cost import ChangeCost
    from braid.control.observation import Observation
    from braid.model.join_graph import JoinGraph
    from braid.model.query import Query
    from braid.optimize.cost_model import IndexProbes
    from braid.plan.join_plan import JoinPlan
    from braid.record.change import Change
    from braid.record.commit import Commit
    from braid.record.enact import Command
    from braid.record.plan_change import Start

AUTO = "auto"
WAYS = (AUTO, *(way.value for way in Way))
AHEAD = 2
"""The next batch is planned already; the one after it is planned while the next one runs."""
_WHEN = re.compile(r"\s*(?P<batch>\d+)\s*(@\s*(?P<workers>\d+(\s*,\s*\d+)*)\s*)?")


@dataclass(frozen=True, slots=True)
class PlanChangeRequest:
    """Another plan, from a batch on, and how to get there."""

    plan: str
    way: str = AUTO
    reason: str = "asked for"
    batch: int = 0
    workers: tuple[int, ...] = ()  # if not of all


@dataclass(frozen=True, slots=True)
class Pricing:
    """What changes of plan are priced by: what is known of streams, and costs."""

    observation: Observation | None = None
    costs: IndexProbes | None = None

    @property
    def graph(self) -> JoinGraph | None:
        """The query and its streams, if all of them is known."""
        return None if self.observation is None else self.observation.graph


UNPRICED = Pricing()


@dataclass(frozen=True, slots=True)
class Migration:
    """All changes of plan of a run; a batch takes at most about `pause_ms` longer for one."""

    workers: int
    pause_ms: float
    way: str = AUTO
    requests: tuple[PlanChangeRequest, ...] = ()
    reason: str = ""
    usual_ms: float = 0.0
    filler: FillPacer | None = None

    def __post_init__(self) -> None:
        """Reject an unknown way to change plans, whether a change is asked for or not."""
        require_known("way to change a plan", self.way, WAYS)

    def checked(self, query: Query, request: PlanChangeRequest) -> PlanChangeRequest:
        """A request in the words of this run, if its plan and its workers are there."""
        aliases = [stream.alias for stream in query.streams]
        text = show_shape(read_shape(query, request.plan), aliases)
        strangers = sorted(set(request.workers) - set(range(self.workers)))
        if strangers:
            raise BraidError(
                f"there is no worker {strangers[0]}",
                hint=f"workers have the numbers 0 to {self.workers - 1}",
            )
        some = () if len(set(request.workers)) == self.workers else request.workers
        return replace(request, plan=text, workers=some)

    def asked(self, *requests: PlanChangeRequest) -> Migration:
        """Have the plan changed, once no other change is under way."""
        all_of_them = sorted((*self.requests, *requests), key=lambda each: each.batch)
        return replace(self, requests=tuple(all_of_them))

    def resumed(self, commit: Commit) -> Migration:
        """Going on from a record; of requests for batches before, only the last one counts."""
        past = [each for each in self.requests if each.batch <= commit.batch]
        done = past if past and past[-1].plan == commit.plans[-1] else past[:-1]
        left = tuple(each for each in self.requests if each not in done)
        return replace(self, requests=left)

    def is_wanted(self, commit: Commit) -> bool:
        """Whether the plan changes, or is about to."""
        return commit.change is not None or self._due(commit, AHEAD) is not None

    def _due(self, commit: Commit, batches: int = 1) -> PlanChangeRequest | None:
        """The next change that is to begin within so many batches."""
        due = (each for each in self.requests if each.batch <= commit.batch + batches)
        return next(due, None)

    def fills_at_once(self, draft: RecordDraft) -> bool:
        """Whether all that a new plan lacks is to be made before rows come.

        They are joined by that plan then, and never by the old one beside it.
        """
        change = draft.commit.change
        return change is not None and not change.filled and _completes(draft.plan, change)

    def after_next(self, draft: RecordDraft, pricing: Pricing) -> list[RecordDraft]:
        """The draft of the batch after the next one, as far as that can be told now.

        Only the plan and the places of groups count of it. If states are made at once before
        it, that comes first.
        """
        commit, change = draft.commit, draft.commit.change
        if change is not None:
            is_last = _completes(draft.plan, change)
            return [enact(draft, EndChange()) if is_last else draft]
        request = None if _is_in_debt(commit) else self._due(commit, AHEAD)
        starts = None if request is None else self._starts(draft, request, pricing)
        if starts is None or starts.best is None:
            return [draft]
        both = RecordDraft(starts.best.commit, starts.best.both)
        if both.commit.change is not None and both.commit.change.fills:
            groups = round(self._filler_of(draft.plan, starts).groups)
            both = enact(both, FillUpTo(groups))
        if self.fills_at_once(both):
            return [both, enact(both, EndChange())]
        is_short = is_over(both.commit, both.plan)
        return [enact(both, EndChange()) if is_short else both]

    def observe(
        self, draft: RecordDraft, elapsed_ms: int, pricing: Pricing
    ) -> Decided[Migration]:
        """Carry on with a change, or begin one, once a batch has taken so long."""
        if draft.commit.change is not None:
            return self._carried_on(draft, elapsed_ms)
        usual = replace(self, usual_ms=elapsed_ms)
        request = self._due(draft.commit)
        if request is None or _is_in_debt(draft.commit):
            return Decided(usual)
        left = tuple(each for each in self.requests if each is not request)
        return replace(usual, requests=left)._begun(draft, request, pricing)

    def _begun(
        self, draft: RecordDraft, request: PlanChangeRequest, pricing: Pricing
    ) -> Decided[Migration]:
        starts = self._starts(draft, request, pricing)
        start = starts.best
        batch, old = draft.commit.batch, show_plans(draft.plan.texts)
        if start is None:
            where = batch, "refused", request.way, old
            refused = Migrated(*where, request.plan, starts.obstacle, {}, request.workers)
            return Decided(self, events=(refused,))
        filler = self._filler_of(draft.plan, starts)
        after = replace(self, reason=request.reason, filler=filler)
        both = RecordDraft(start.commit, start.both)
        commands: list[Command] = [BeginChange(request.plan, start.way, request.workers)]
        events = [after._step(both, "start", starts.numbers)]
        if is_over(both.commit, both.plan):
            commands.append(EndChange())
            events.append(after._step(both, "end", {}))
        elif both.commit.change is not None and both.commit.change.fills:
            commands.append(FillUpTo(round(filler.groups)))
        return Decided(after, tuple(commands), tuple(events))

    def _carried_on(self, draft: RecordDraft, elapsed_ms: int) -> Decided[Migration]:
        commit, plan = draft.commit, draft.plan
        change = commit.change
        assert change is not None, "there is nothing to carry on with"
        if is_over(commit, plan):
            return Decided(self, (EndChange(),), (self._step(draft, "end", {}),))
        if reason := hopelessness(commit, plan):
            told = replace(self._step(draft, "given up", {}), reason=reason)
            return Decided(self, (GiveUpChange(),), (told,))
        if not change.fills:
            return Decided(self)
        if self.filler is None:  # the batch was another run's
            filler = FillPacer.of(plan.groups, self.pause_ms, self.usual_ms)
        else:
            filler = self.filler.learned(elapsed_ms)
        told = self._step(draft, "fill", {"groups": change.filled})
        more = FillUpTo(change.filled + round(filler.groups))
        return Decided(replace(self, filler=filler), (more,), (told,))

    def _starts(
        self, draft: RecordDraft, request: PlanChangeRequest, pricing: Pricing
    ) -> _Starts:
        starts = _ways_of(draft, request.plan, request.way, request.workers)
        costs = pricing.costs
        graph = pricing.graph if request.way == AUTO and costs is not None else None
        if graph is None or costs is None:
            return _Starts(starts)
        possible = [each for each in starts if not each.obstacle]
        around = self._circumstances(draft)
        return _Starts(
            starts,
            {each.way: cost_of_change(each, graph, costs, around) for each in possible},
            costs_of_plans(possible[0], graph, costs) if possible else {},
        )

    def foreseen_s(
        self,
        draft: RecordDraft,
        workers: Collection[int],
        costs: IndexProbes,
        graph: JoinGraph,
        plan: str,
    ) -> float | None:
        """The seconds of a core that a change of some workers takes, in the cheapest way.

        What moves, waits or is owed now will be done by then. None if there is no way, of which
        is told where it is tried.
        """
        nothing: tuple[tuple[Any, ...], ...] = ((),) * draft.commit.workers
        commit = replace(draft.commit, moves=(), generations=nothing, waiting=nothing)
        some = () if len(workers) == commit.workers else workers
        starts = _ways_of(RecordDraft(commit, draft.plan), plan, self.way, some)
        around = self._circumstances(draft)
        possible = (each for each in starts if not each.obstacle)
        taken = (cost_of_change(each, graph, costs, around).takes for each in possible)
        return min(taken, default=None)

    def _circumstances(self, draft: RecordDraft) -> Circumstances:
        newest = [moment for moment in draft.commit.newest_us if moment is not None]
        plan = draft.plan

        def filling_s(making_s: float) -> float:
            """How long batches fill states that take so long to make, if not all at once."""
            pacer = self._filler(plan, 1000 * making_s / self.workers)
            batches = math.ceil(plan.groups / pacer.groups)
            return 0.0 if batches == 1 else batches * self.usual_ms / 1000

        return Circumstances(
            lateness=plan.lateness_us / 1_000_000,
            skew=(max(newest) - min(newest)) / 1_000_000 if newest else 0.0,
            filling=filling_s,
        )

    def _filler_of(self, plan: JoinPlan, starts: _Starts) -> FillPacer:
        """How much is made at a time, if a change begins in the best of some ways."""
        assert starts.best is not None, "or there is no change"
        cost = starts.costs.get(starts.best.way)
        return self._filler(plan, None if cost is None else 1000 * cost.making / self.workers)

    def _filler(self, plan: JoinPlan, foreseen_ms: float | None) -> FillPacer:
        return FillPacer.of(plan.groups, self.pause_ms, self.usual_ms, foreseen_ms)

    def _step(self, draft: RecordDraft, step: str, numbers: Mapping[str, float]) -> Migrated:
        commit, plan = draft.commit, draft.plan
        assert commit.change is not None, "asked only of a change"
        return Migrated(
            batch=commit.batch,
            step=step,
            way=way_of(commit.change).value,
            old=show_plans(plan.texts[:-1]),
            new=plan.texts[-1],
            reason=self.reason,
            numbers=dict(numbers),
            workers=_changing_workers(draft, commit.change),
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
    def numbers(self) -> dict[str, float]:
        """The figures behind the choice, for the event."""
        assert self.best is not None, "asked only if there is a way"
        numbers = {"states_made": float(len(self.best.fresh))}
        for way, cost in self.costs.items():
            numbers |= {f"{way.value}_s": cost.takes, f"{way.value}_lasts_s": cost.lasts}
        return {**numbers, **self.plans}

    @property
    def obstacle(self) -> str:
        """Why no way can be taken."""
        reasons = {each.obstacle: each.way.value for each in self.starts}
        if len(reasons) == 1:
            return self.starts[0].obstacle
        return "; ".join(f"by {way}: {reason}" for reason, way in reasons.items())


def _ways_of(draft: RecordDraft, plan: str, way: str, workers: Collection[int]) -> list[Start]:
    """How a change would begin, in each way that may be taken."""
    ways = list(Way) if way == AUTO else [Way(way)]
    return [begun(draft.commit, draft.plan, plan, each, workers) for each in ways]


def _completes(plan: JoinPlan, change: Change) -> bool:
    """Whether the next batch makes the last states that a new plan lacks."""
    return change.fills and change.filling >= plan.groups


def _changing_workers(draft: RecordDraft, change: Change) -> tuple[int, ...]:
    """The workers whose plan changes, if it is not that of all."""
    if change.groups is None:
        return ()
    home = draft.commit.placement(draft.plan.rounds.join_spaces[0])
    owners = np.array(home.owners)[change.marks(home.groups)]
    return tuple(map(int, np.unique(owners)))


def _is_in_debt(commit: Commit) -> bool:
    """Whether something moves, waits or is owed, which a change of plan has to wait for."""
    return commit.owes or any(commit.generations)


def parse_request(text: str, way: str) -> PlanChangeRequest:
    """Read "BATCH:PLAN", or "BATCH@WORKER,…:PLAN".

    >>> parse_request("12:((a b) c)", "auto")
    PlanChangeRequest(plan='((a b) c)', way='auto', reason='asked for', batch=12, workers=())
    >>> parse_request("12@0,3:((a b) c)", "auto").workers
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
    return PlanChangeRequest(plan.strip(), way, batch=int(found["batch"]), workers=workers)
