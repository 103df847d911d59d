"""Streams that have fallen silent, so that they do not hold the watermark back for ever."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(slots=True)
class Idleness:
    """Remembers when each stream last had rows; with no `timeout_us`, no stream is ever idle.

    The answer depends on the clock, so it is given once per batch and goes into the commit
    record by way of the watermark: a batch that is evaluated again does not ask again.
    """

    streams: int
    timeout_us: int | None
    clock: Callable[[], float] = time.monotonic
    _seen_at: list[float] = field(init=False)

    def __post_init__(self) -> None:
        """Give every stream its full time from the start of the run."""
        self._seen_at = [self.clock()] * self.streams

    def after(self, newest_us: Sequence[Sequence[int | None]]) -> frozenset[int]:
        """The streams that are idle after a batch, given each worker's newest rows in it."""
        now = self.clock()
        for of_worker in newest_us:
            for stream, newest in enumerate(of_worker):
                if newest is not None:
                    self._seen_at[stream] = now
        if self.timeout_us is None:
            return frozenset()
        silent = (s for s, at in enumerate(self._seen_at) if now - at > self.timeout_us / 1e6)
        return frozenset(silent)
