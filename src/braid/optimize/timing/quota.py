"""What a change of plan may cost: less than it saves, and a small part of all work."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from braid.model.checks import require_within
from braid.optimize.timing.contract import Decision

if TYPE_CHECKING:
    from braid.optimize.plan import Plan

_NEWEST = 0.3
"""The weight of the latest interval in what is expected of the next."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """Compare the seconds of a core that a change takes with those that it saves.

    It saves until statistics change again. That is expected after as long as it usually took,
    later intervals counting for more; before there are two changes, after `first_ms`. Numbers
    that are on their way from one value to the next have changed once.

    A change of plan may take `part` of what `cores` do in that time, together with the search
    for the plan. A plan that misses a budget is left for another reason than to save CPU: then
    this is all.
    """

    first_ms: float
    cores: float = 1.0
    part: float = 0.1
    changed_ms: float | None = field(default=None, metadata={"memory": True})
    usual_ms: float | None = field(default=None, metadata={"memory": True})
    searched_s: float = field(default=0.0, metadata={"memory": True})

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        require_within("part", self.part, 0, 1)
        require_within("first_ms", self.first_ms, 0)

    @property
    def horizon_s(self) -> float:
        """How long statistics are expected to stay as they are."""
        return (self.first_ms if self.usual_ms is None else self.usual_ms) / 1000

    @property
    def allowed_s(self) -> float:
        """The seconds of a core that a change may take."""
        return self.part * self.horizon_s * self.cores

    def after_change(self, elapsed_ms: float) -> Quota:
        """The quota once statistics have changed."""
        if self.changed_ms is None:
            return replace(self, changed_ms=elapsed_ms)
        passed_ms = elapsed_ms - self.changed_ms
        usual_ms = passed_ms
        if self.usual_ms is not None:
            usual_ms = self.usual_ms + _NEWEST * (passed_ms - self.usual_ms)
        return replace(self, changed_ms=elapsed_ms, usual_ms=usual_ms)

    def after_search(self, taken_s: float) -> Quota:
        """The quota once a search for plans has taken so long."""
        return replace(self, searched_s=taken_s)

    def may_search(self) -> Decision:
        """Whether to look for a plan, if the next search takes as long as the last one."""
        numbers = {"search_s": self.searched_s, "allowed_s": self.allowed_s}
        yes = self.searched_s <= self.allowed_s
        return Decision(
            yes, "" if yes else "the search would take more than its quota", numbers
        )

    def weigh(self, change_s: float, current: Plan, candidate: Plan) -> Decision:
        """Whether a change that takes so many seconds of a core is allowed."""
        saved_s = self.horizon_s * (current.cpu - candidate.cpu)
        numbers = {
            "change_s": change_s,
            "search_s": self.searched_s,
            "allowed_s": self.allowed_s,
            "saved_s": saved_s,
            "horizon_s": self.horizon_s,
        }
        if change_s + self.searched_s > self.allowed_s:
            return Decision(False, "the change would take more than its quota", numbers)
        if current.qualified and saved_s <= change_s:
            reason = "it would not pay off before statistics change again"
            return Decision(False, reason, numbers)
        return Decision(True, "", numbers)
