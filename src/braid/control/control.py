"""All deciders of a run, and the order in which they are asked.

After a batch: what is known of streams and workers (`learned`); what moves, who waits and what
is pushed out (`observe`); whether there is a better plan (`replan`); and the change of plan
(`change_plan`). Before the next one: what has arrived, and what begins to move
(`before_batch`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from braid.control.decider import Decided
from braid.control.migration import Pricing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from braid.control.adaptation import Adaptation
    from braid.control.decider import BatchSeen
    from braid.control.migration import Migration, PlanChangeRequest
    from braid.control.observation import Observation, Streams
    from braid.control.pacing import Pacing
    from braid.control.relocation import Arrival, Relocation
    from braid.control.replanning import Replanning
    from braid.optimize.cost_model import IndexProbes
    from braid.record.commit import Commit
    from braid.record.enact import RecordDraft
    from braid.record.move import Move, MoveKey
    from braid.record.report import Report
    from braid.record.worker_orders import WorkerOrders


@dataclass(frozen=True, slots=True)
class Looked:
    """What comes of a look for better plans: pairs to be sampled, and how many `searches`."""

    decided: Decided[Control]
    pairs: tuple[Streams, ...] = ()
    searches: int = 0


@dataclass(frozen=True, slots=True)
class Control:
    """A run's deciders; without an optimizer, nobody looks for better plans.

    What operations cost is known once it was measured, for a request that depends on it.
    """

    observation: Observation
    relocation: Relocation
    pacing: Pacing
    adaptation: Adaptation
    migration: Migration
    replanning: Replanning | None = None
    costs: IndexProbes | None = None

    @property
    def pricing(self) -> Pricing:
        """What changes of plan are priced by."""
        return Pricing(self.observation, self.costs)

    def asked_to_clean_up(self) -> Control:
        """Have all that is owed made."""
        return replace(self, adaptation=self.adaptation.cleaning_up())

    def asked_to_change(self, request: PlanChangeRequest, costs: IndexProbes | None) -> Control:
        """Have the plan changed."""
        migration = self.migration.asked(request)
        return replace(self, migration=migration, costs=costs or self.costs)

    def under_way(self, commit: Commit) -> tuple[Move, ...]:
        """All moves, those that have not begun too."""
        return self.relocation.under_way(commit)

    def orders(self, commit: Commit) -> tuple[WorkerOrders, ...]:
        """What each worker is to do in the batch after a commit."""
        changes = self.migration.is_wanted(commit)
        return self.adaptation.orders(commit, self.pacing, changes=changes)

    def after_next(self, draft: RecordDraft) -> list[RecordDraft]:
        """The draft of the batch after the next one; perhaps of one without rows before it."""
        if self.relocation.computed:
            return [draft]  # those belong to the plan as it is
        return self.migration.after_next(draft, self.pricing)

    def before_batch(
        self,
        draft: RecordDraft,
        ready: Collection[MoveKey],
        arrivals: Mapping[MoveKey, Arrival],
    ) -> Decided[Control]:
        """What the next batch starts from."""
        decided = self.relocation.before_batch(draft.commit, ready, arrivals)
        after = replace(self, relocation=decided.next)
        return Decided(after, decided.commands, decided.events)

    def counted(self, batch: int, reports: Sequence[Report]) -> Control:
        """What is known of groups after a batch; the record of that batch keeps it."""
        return replace(self, adaptation=self.adaptation.counted(batch, reports))

    def learned(self, seen: BatchSeen) -> Control:
        """What is known of streams and workers after a batch."""
        observation, replanning = self.observation.observe(seen), self.replanning
        if replanning is not None:
            replanning = replanning.learned(seen, observation)
        return replace(self, observation=observation, replanning=replanning)

    def observe(self, seen: BatchSeen) -> Decided[Control]:
        """Carry on with what moves, and let the strategy decide what else is to be done."""
        relocation = self.relocation.observe(seen)
        pacing = self.pacing.observe(seen)
        under_way = relocation.next.under_way(seen.after)
        adaptation = self.adaptation.observe(seen, under_way)
        events = (*relocation.events, *pacing.events, *adaptation.events)
        after = replace(
            self,
            relocation=relocation.next,
            pacing=pacing.next,
            adaptation=adaptation.next,
        )
        if not after.migration.is_wanted(seen.after):
            computed = after.relocation.compute(seen.batch, after.adaptation.accepted)
            after = replace(after, relocation=computed.next)
            events += computed.events
        return Decided(after, events=events)

    def replan(self, seen: BatchSeen, draft: RecordDraft) -> Looked:
        """Look for better plans."""
        if self.replanning is None or seen.is_ending:
            return Looked(Decided(self))
        found = self.replanning.observe(seen, draft, self.migration, self.observation)
        requests = (self.migration.checked(draft.plan.query, each) for each in found.requests)
        migration = self.migration.asked(*requests)
        after = replace(self, replanning=found.next, migration=migration)
        return Looked(Decided(after, events=found.events), found.pairs, found.searches)

    def searched(self, taken_s: float, searches: int) -> Control:
        """Note how long searches for plans took."""
        if self.replanning is None:
            return self
        return replace(self, replanning=self.replanning.timed(taken_s, searches))

    def change_plan(self, draft: RecordDraft, elapsed_ms: int) -> Decided[Control]:
        """Carry on with a change of plan, or begin one."""
        decided = self.migration.observe(draft, elapsed_ms, self.pricing)
        after = replace(self, migration=decided.next)
        return Decided(after, decided.commands, decided.events)

    def going_on_from(self, draft: RecordDraft) -> Control:
        """Ready for the next batch: by its plan, and with what a change waits for on its way.

        What was about to move belongs to the plan before.
        """
        after = self
        if draft.plan is not self.adaptation.plan:
            after = replace(
                self,
                relocation=self.relocation.give_up_computed(),
                adaptation=self.adaptation.replanned(draft.plan, draft.commit),
            )
        return after.asked_to_clean_up() if self.migration.is_wanted(draft.commit) else after

    def ending(self) -> Control:
        """Begin no move any more."""
        return replace(self, relocation=self.relocation.give_up_computed())
