"""Brings tables to the engine, a batch after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.engine.feed import ThreadFeed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.engine.loop import BatchLoop
    from braid.local.split import StreamRows

_BATCHES = "batches"


class LocalFeed(ThreadFeed):
    """Takes the batches that a checkpoint has not seen yet."""

    def __init__(self, batches: Sequence[StreamRows], loop: BatchLoop) -> None:
        """Begin at once."""
        self._batches = batches
        super().__init__(loop)

    def _bring(self) -> None:
        position = self._loop.engine.commit.position or {_BATCHES: 0}
        for number in range(position[_BATCHES], len(self._batches)):
            if self._stopping.is_set():
                return
            self._loop.on_rows(self._batches[number], {_BATCHES: number + 1})
