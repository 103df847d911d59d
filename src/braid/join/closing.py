"""Up to which moment a batch may close: show groups, or let waiting rows go.

While rows still come, a moment is complete once the watermark has passed it. At the end of the
input nothing more comes: groups are shown up to the watermark itself, and all rows that waited
are let go. Rows for a closed moment that come later, in another run, are late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from braid.join.plan import JoinPlan
    from braid.state.commit import Commit


def closing_us(plan: JoinPlan, commit: Commit, *, at_end: bool = False) -> int | None:
    """The last moment that a batch after `commit` closes; None if there is none to close."""
    if not plan.closes:
        return None
    if at_end and plan.is_ordered:
        return commit.latest_us
    low = plan.low_us(commit, len(plan.rounds.rounds))
    if low is None:
        return None
    return low if at_end and not commit.owes else low - 1


def is_due(plan: JoinPlan, commit: Commit, *, at_end: bool = False) -> bool:
    """Whether a batch without rows would close something."""
    closing = closing_us(plan, commit, at_end=at_end)
    if closing is None:
        return False
    if commit.closed_us is None:
        return True
    grouping = plan.query.grouping
    slide = 1 if grouping is None else grouping.slide_us
    return closing // slide > commit.closed_us // slide
