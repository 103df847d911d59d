"""When to sample pairs of streams that no probe tells of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from braid.control.decider import BatchSeen
    from braid.control.observation import Observation, Streams


@dataclass(frozen=True, slots=True)
class Sampling:
    """Has each pair that nothing is known of sampled once in `every_us` of event time."""

    every_us: int
    sampled_us: Mapping[Streams, int] = field(default_factory=dict)

    def observe(
        self, seen: BatchSeen, observation: Observation
    ) -> tuple[Sampling, tuple[Streams, ...]]:
        """The pairs to look for among the rows of a batch, unless one is being sampled."""
        now_us = seen.after.latest_us or 0
        if seen.is_sampling or not seen.input_rows:
            return self, ()
        due = tuple(pair for pair in observation.unmeasured if self._is_due(pair, now_us))
        sampled_us = {**self.sampled_us, **dict.fromkeys(due, now_us)}
        return replace(self, sampled_us=sampled_us), due

    def _is_due(self, pair: Streams, now_us: int) -> bool:
        last_us = self.sampled_us.get(pair)
        return last_us is None or now_us - last_us >= self.every_us
