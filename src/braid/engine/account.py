"""What is told of a batch once it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from braid.control.observation import rate_facts, selectivity_facts
from braid.events import (
    BatchDone,
    Displaced,
    ProbeCount,
    StateSize,
    WorkerShare,
    instant,
)
from braid.plan.names import origin_name, state_names
from braid.record.report import edge_totals
from braid.state.store import DISK, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.optimize.timing.statistics import DataStatistics
    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from braid.record.report import Report


def batch_done(
    plan: JoinPlan,
    commit: Commit,
    reports: Sequence[Report],
    known: DataStatistics,
    elapsed_ms: int,
    decided_ms: int,
) -> BatchDone:
    """The account of a batch that left a commit; `known` is what the run knows after it."""
    return BatchDone(
        batch=commit.batch,
        input_rows=sum(report.input_rows for report in reports),
        late_rows=sum(report.late_rows for report in reports),
        ahead_rows=sum(report.ahead_rows for report in reports),
        null_key_rows=sum(report.null_key_rows for report in reports),
        null_time_rows=sum(report.null_time_rows for report in reports),
        out_of_range_time_rows=sum(report.out_of_range_time_rows for report in reports),
        bad_rows=sum(report.bad_rows for report in reports),
        output_rows=sum(report.output_rows for report in reports),
        elapsed_ms=elapsed_ms,
        decided_ms=decided_ms,
        watermark=instant(commit.watermark_us),
        workers=tuple(_shares(commit, reports)),
        states=tuple(_states(plan, commit)),
        probes=tuple(_probes(plan, reports)),
        rates=rate_facts(known),
        selectivities=selectivity_facts(known),
    )


def newly_displaced(
    batch: int, reports: Sequence[Report], told: set[str]
) -> Iterator[Displaced]:
    """The hosts whose memory refuses state and that are not `told` of yet; now they are."""
    for report in reports:
        if report.memory_refusal and report.host not in told:
            told.add(report.host)
            runs = sum(each.displaced_runs for each in reports if each.host == report.host)
            yield Displaced(batch, report.host, runs, report.memory_refusal)


def _shares(commit: Commit, reports: Sequence[Report]) -> Iterator[WorkerShare]:
    owners = np.concatenate([placement.owners for placement in commit.placements])
    groups = np.bincount(owners, minlength=commit.workers).tolist()
    by_worker: dict[int, list[Report]] = {}
    for report in reports:
        by_worker.setdefault(report.worker, []).append(report)
    for worker, mine in sorted(by_worker.items()):
        yield WorkerShare(
            worker=worker,
            groups=groups[worker],
            input_rows=sum(report.input_rows for report in mine),
            output_rows=sum(report.output_rows for report in mine),
            state_rows=sum(run.rows for run in commit.runs(worker)),
            memory_bytes=commit.bytes_in(MEMORY, worker),
            disk_bytes=commit.bytes_in(DISK, worker),
            busy_ms=sum(report.busy_ms for report in mine),
            rebuilt_runs=sum(report.rebuilt_runs for report in mine),
            host=mine[-1].host,
            displaced_runs=sum(report.displaced_runs for report in mine),
        )


def _states(plan: JoinPlan, commit: Commit) -> Iterator[StateSize]:
    for number, name in enumerate(state_names(plan.query, plan.rounds)):
        runs = commit.runs_of(number)
        yield StateSize(name, sum(r.rows for r in runs), sum(r.length for r in runs))


def _probes(plan: JoinPlan, reports: Sequence[Report]) -> Iterator[ProbeCount]:
    """The matches of every edge that some worker probed along, all workers together."""
    names = state_names(plan.query, plan.rounds)
    for (join, origin, state), (asked, found) in sorted(edge_totals(reports).items()):
        who = origin_name(plan.query, plan.rounds, join, origin)
        yield ProbeCount(who, names[state], asked, found)
