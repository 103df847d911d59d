"""Folding the workers' reports of a batch into its commit record."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from braid.join.arrivals import newer
from braid.state.commit import Commit

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from braid.join.plan import JoinPlan
    from braid.join.worker import Report


def next_commit(
    plan: JoinPlan,
    previous: Commit,
    reports: Sequence[Report],
    *,
    idle: Collection[int] = (),
    position: dict[str, Any] | None = None,
) -> Commit:
    """The record of the next batch; `idle` streams do not hold the watermark back."""
    by_worker = sorted(reports, key=lambda report: report.worker)
    newest = tuple(
        reduce(newer, (report.newest_us[stream] for report in reports), so_far)
        for stream, so_far in enumerate(previous.newest_us)
    )
    awake = [newest[stream] for stream in plan.streams if stream not in idle]
    return Commit(
        batch=previous.batch + 1,
        watermark_us=plan.watermark_us(awake, previous.watermark_us),
        newest_us=newest,
        assignment=previous.assignment,
        ladders=tuple(report.ladders for report in by_worker),
        parts=tuple(part for report in by_worker for part in report.parts),
        late_parts=tuple(part for report in by_worker for part in report.late_parts),
        position=position,
    )
