"""Up to which moment a batch may close: show groups, or let waiting rows go.

While rows still come, a moment is complete once the watermark has passed it. At the end of the
input nothing more comes: groups are shown up to the watermark itself, and all rows that waited
are let go. Rows for a closed moment that come later, in another run, are late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from braid.record.generation import Generation
    from braid.record.move import Move


def earliest_pending_us(plan: JoinPlan, commit: Commit, number: int) -> int | None:
    """The time that no row comes below any more to a round; `number` may be past the last.

    Results that an earlier round owes are younger than the watermark was when it began to,
    and so are those of groups that it does not have at the time, and rows that wait.
    """
    owing = [each for own in commit.generations for each in own if each.owes]
    absent: list[Generation | Move] = [*owing, *commit.moves]
    times = [
        commit.watermark_us,
        *(each.since_us for each in absent if plan.round_of_space(each.space) < number),
        *(each.since_us for own in commit.waiting for each in own if each.round <= number),
    ]
    known = [time for time in times if time is not None]
    return min(known) if len(known) == len(times) else None


def finalize_up_to_us(plan: JoinPlan, commit: Commit, *, at_end: bool = False) -> int | None:
    """The last moment that a batch after `commit` closes; None if there is none to close."""
    if not plan.closes:
        return None
    if at_end and plan.is_ordered:
        return commit.latest_us
    low = earliest_pending_us(plan, commit, len(plan.rounds.rounds))
    if low is None:
        return None
    return low if at_end and not commit.owes else low - 1


def is_due(plan: JoinPlan, commit: Commit, *, at_end: bool = False) -> bool:
    """Whether a batch without rows would close something."""
    closing = finalize_up_to_us(plan, commit, at_end=at_end)
    if closing is None:
        return False
    if commit.closed_us is None:
        return True
    grouping = plan.query.grouping
    slide = 1 if grouping is None else grouping.slide_us
    return closing // slide > commit.closed_us // slide
