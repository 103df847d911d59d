"""What one worker is asked to do in one round of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.record.closing import earliest_pending_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from braid.plan.join_plan import JoinPlan
    from braid.record.change import Change
    from braid.record.commit import Commit
    from braid.record.generation import Generation
    from braid.record.move import Move, Waiting
    from braid.record.worker_orders import WorkerOrders
    from braid.state.groups import Ranges
    from braid.state.runs import Ladder


@dataclass(frozen=True, slots=True)
class RoundOrders:
    """What one worker is asked to do with its rows of one round of a batch.

    Moments up to `closed_us` have been dealt with; those up to `finalize_up_to_us` are to be,
    if the query waits for moments to be complete. No row comes to this round from below
    `low_us`, and those that none above `purged_us` can reach are gone from its states: if it
    `lags`, a batch later than they could be, for results may be owed. By space, `paused` are
    the groups whose rows must wait, `leaving` those to be taken out of the states. `files` are
    to be kept. Of a plan that has two trees, `change` says what each is there for. New rows
    from after `ahead_after_us` are refused.
    """

    plan: JoinPlan
    batch: int
    round: int
    worker: int
    watermark_us: int | None
    low_us: int | None
    purged_us: int | None
    newest_us: tuple[int | None, ...]
    closed_us: int | None
    finalize_up_to_us: int | None
    ladders: tuple[Ladder, ...]
    generations: tuple[Generation, ...]
    waiting: tuple[Waiting, ...]
    paused: Mapping[int, Ranges]
    leaving: Mapping[int, Ranges]
    lags: bool
    change: Change | None
    files: set[str]
    worker_orders: WorkerOrders
    results: Path
    late: Path | None
    ahead_after_us: int | None = None
    host: str = ""


def round_orders(
    plan: JoinPlan,
    commit: Commit,
    *,
    number: int,
    worker: int,
    finalize_up_to_us: int | None,
    worker_orders: WorkerOrders,
    results: Path,
    late: Path | None,
    ahead_after_us: int | None = None,
    host: str = "",
) -> RoundOrders:
    """What a worker does in a round of the batch that follows a commit."""
    leaving = (m for m in commit.moves if m.runs is None and m.sender == worker)
    return RoundOrders(
        plan=plan,
        batch=commit.batch + 1,
        round=number,
        worker=worker,
        watermark_us=commit.watermark_us,
        low_us=earliest_pending_us(plan, commit, number),
        purged_us=commit.purged_us[number],
        newest_us=commit.newest_us,
        closed_us=commit.closed_us,
        finalize_up_to_us=finalize_up_to_us,
        ladders=commit.ladders[worker],
        generations=commit.generations[worker],
        waiting=commit.waiting[worker],
        paused=_ranges(commit.moves),
        leaving=_ranges(leaving),
        lags=worker_orders.defers
        or worker_orders.may_wait
        or commit.owes
        or any(commit.generations),
        change=commit.change,
        files=commit.files(worker),
        worker_orders=worker_orders,
        results=results,
        late=late,
        ahead_after_us=ahead_after_us,
        host=host,
    )


def _ranges(moves: Iterable[Move]) -> dict[int, Ranges]:
    """The groups that move, by space."""
    found: dict[int, Ranges] = {}
    for move in moves:
        found[move.space] = (*found.get(move.space, ()), *move.ranges)
    return found
