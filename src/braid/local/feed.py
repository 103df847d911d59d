"""Brings tables to the engine, a batch after the other."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.engine.loop import BatchLoop
    from braid.local.split import StreamRows

_BATCHES = "batches"


class LocalFeed:
    """Takes the batches that a checkpoint has not seen yet, in a thread of its own."""

    is_waiting = False

    def __init__(self, batches: Sequence[StreamRows], loop: BatchLoop) -> None:
        """Begin at once."""
        self._batches, self._loop = batches, loop
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._failure: Exception | None = None
        self._used_up = False
        threading.Thread(target=self._work, name="braid", daemon=True).start()

    def _work(self) -> None:
        try:
            position = self._loop.engine.commit.position or {_BATCHES: 0}
            for number in range(position[_BATCHES], len(self._batches)):
                if self._stopping.is_set():
                    return
                self._loop.on_rows(self._batches[number], {_BATCHES: number + 1})
            if not self._stopping.is_set():
                self._loop.end()
                self._used_up = True
        except BaseException as fault:
            self._failure = self._loop.failure(fault)
        finally:
            self._ended.set()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for the thread; a failure in it is raised here."""
        ended = self._ended.wait(timeout_s)
        if self._failure is not None:
            raise self._failure
        return ended

    @property
    def is_used_up(self) -> bool:
        """Whether all batches have been taken, and all that they gave has been shown."""
        return self._used_up

    def stop(self) -> None:
        """Take no further batch."""
        self._stopping.set()
