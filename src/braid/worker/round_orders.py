"""What one worker is asked to do in one round of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from braid.plan.join_plan import JoinPlan
    from braid.record.change import Change
    from braid.record.generation import Generation
    from braid.record.move import Waiting
    from braid.record.orders import TaskOrders
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
    files: frozenset[str]
    worker_orders: WorkerOrders
    results: Path
    late: Path | None
    ahead_after_us: int | None = None
    host: str = ""


def round_orders(
    plan: JoinPlan, orders: TaskOrders, number: int, worker: int, host: str = ""
) -> RoundOrders:
    """What a worker does in a round of a batch."""
    return RoundOrders(
        plan=plan,
        batch=orders.batch,
        round=number,
        worker=worker,
        watermark_us=orders.watermark_us,
        low_us=orders.pending_us[number],
        purged_us=orders.purged_us[number],
        newest_us=orders.newest_us,
        closed_us=orders.closed_us,
        finalize_up_to_us=orders.finalize_up_to_us,
        ladders=orders.ladders,
        generations=orders.generations,
        waiting=orders.waiting,
        paused=orders.paused,
        leaving=orders.leaving,
        lags=orders.owes or orders.own.defers or orders.own.may_wait,
        change=orders.change,
        files=orders.files,
        worker_orders=orders.own,
        results=orders.results,
        late=orders.late,
        ahead_after_us=orders.ahead_after_us,
        host=host,
    )
