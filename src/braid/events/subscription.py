"""Events for whoever is slow: a queue of bounded length that never holds a run up."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from braid.events.facts import EventsMissed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.events.telling import ToldEvent


class Subscription:
    """The events from some moment on, in order, to iterate over; it ends with the run.

    If more than `most` wait, the oldest of them are dropped, and an event `missed` stands in
    their place.
    """

    def __init__(self, most: int) -> None:
        """Wait for events."""
        self._most = most
        self._waiting: deque[ToldEvent] = deque()
        self._missed = 0
        self._is_over = False
        self._changed = threading.Condition()

    def put(self, told: ToldEvent) -> None:
        """Take an event in, at once."""
        with self._changed:
            self._waiting.append(told)
            if len(self._waiting) > self._most:
                self._waiting.popleft()
                self._missed += 1
            self._changed.notify_all()

    def end(self) -> None:
        """No more events come."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def take(self, timeout_s: float | None = None) -> ToldEvent | None:
        """The next event; None if none comes in this time, or any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_over, timeout_s)
            if not self._waiting:
                return None
            if self._missed:
                missed, self._missed = EventsMissed(self._missed), 0
                return replace(self._waiting[0], event=missed, sequence=None)
            return self._waiting.popleft()

    def __iter__(self) -> Iterator[ToldEvent]:
        """All events until the run is over."""
        while (told := self.take()) is not None:
            yield told
