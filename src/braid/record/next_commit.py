"""Folding the workers' reports of a batch into its commit record."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from braid.record.closing import earliest_pending_us
from braid.record.commit import first_commit, newer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from braid.record.move import Move
    from braid.record.report import Report


def commit_before_first(plan: JoinPlan, workers: int) -> Commit:
    """The record before the first batch of a plan."""
    rounds = plan.rounds
    return replace(
        first_commit(
            streams=len(plan.streams),
            spaces=len(rounds.spaces),
            states=len(rounds.states),
            rounds=len(rounds.rounds),
            groups=plan.groups,
            workers=workers,
        ),
        plans=plan.texts,
    )


def next_commit(
    plan: JoinPlan,
    previous: Commit,
    reports: Sequence[Report],
    *,
    finalize_up_to_us: int | None = None,
    idle: Collection[int] = (),
) -> Commit:
    """The record of the next batch; `idle` streams do not hold the watermark back."""
    in_order = sorted(reports, key=lambda report: (report.worker, report.round))
    newest = tuple(
        reduce(newer, (report.newest_us[stream] for report in reports), so_far)
        for stream, so_far in enumerate(previous.newest_us)
    )
    ladders = [list(of_worker) for of_worker in previous.ladders]
    for report in in_order:
        for state, ladder in report.ladders.items():
            ladders[report.worker][state] = ladder
    generations = [list(of_worker) for of_worker in previous.generations]
    for report in in_order:
        known = generations[report.worker]
        known[:] = [each for each in known if each.space not in report.generations]
        known += [each for own in report.generations.values() for each in own]
    waiting = [list(of_worker) for of_worker in previous.waiting]
    for report in in_order:
        known_rows = waiting[report.worker]
        known_rows[:] = [each for each in known_rows if each.round != report.round]
        known_rows += report.waiting
    awake = [newest[stream] for stream in plan.streams if stream not in idle]
    return replace(
        previous,
        batch=previous.batch + 1,
        watermark_us=plan.watermark_us(awake, previous.watermark_us),
        newest_us=newest,
        closed_us=newer(previous.closed_us, finalize_up_to_us),
        ladders=tuple(tuple(of_worker) for of_worker in ladders),
        generations=tuple(tuple(of_worker) for of_worker in generations),
        waiting=tuple(tuple(of_worker) for of_worker in waiting),
        moves=tuple(_carried_on(move, reports) for move in previous.moves),
        change=previous.change and replace(previous.change, filled=previous.change.filling),
        purged_us=tuple(
            earliest_pending_us(plan, previous, n) for n in range(len(plan.rounds.rounds))
        ),
        parts=tuple(part for report in in_order for part in report.parts),
        late_parts=tuple(part for report in in_order for part in report.late_parts),
    )


def _carried_on(move: Move, reports: Sequence[Report]) -> Move:
    """A move, whose sender may have taken the groups out by now."""
    if move.runs is not None:
        return move
    (runs,) = (
        report.parcels[move.space]
        for report in reports
        if report.worker == move.sender and move.space in report.parcels
    )
    return replace(move, runs=runs)
