"""Runs that go on by turns, a batch each: what disturbs a machine then disturbs all alike.

A run's turn lasts from the end of one batch with rows to the end of the next, with all that is
done in between. What it does beside its batches, as planning the next, ends in its turn too,
unless that takes longer than a batch. What Java does once in fifty batches or so, for half a
second, would meet one run and spare the others: so it is done between turns.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from braid.events import BatchDone
from braid.spark.session import collect_garbage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from braid.events import Event
    from braid.front.run import Run

_LOOK_S = 0.05  # how often to look whether a run has ended in its turn
_ROUNDS, _REST_S = 2, 0.5  # after so many turns of all they rest: Spark tidies up after Java


def run_in_turns(starts: Sequence[Callable[[], Run]]) -> list[Turns]:
    """Start runs one after the other, and let them go on by turns until all have ended."""
    everyone: list[Turns] = []
    try:
        _rest()
        for start in starts:
            everyone.append(Turns(start))
            everyone[-1].end()
        left, rounds = everyone, count(1)
        while left:
            if next(rounds) % _ROUNDS == 0:
                _rest()
            for turns in left:
                turns.begin()
                turns.end()
            left = [turns for turns in left if not turns.has_ended]
    except BaseException:
        for turns in everyone:
            turns.stop()
        raise
    return everyone


def _rest() -> None:
    collect_garbage()
    time.sleep(_REST_S)


class Turns:
    """A run, and the time that each of its turns has taken; the first is from its start on."""

    def __init__(self, start: Callable[[], Run]) -> None:
        """Start the run."""
        self.taken_ms: list[int] = []
        self.has_ended = False
        self._began = time.monotonic()
        self._go_on, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self.run = start()
        self.run.listen(self._hold_up)

    def _hold_up(self, event: Event) -> None:
        """At the end of a turn, wait for the next, in the run's own thread."""
        if isinstance(event, BatchDone) and event.input_rows:
            self.taken_ms.append(round((time.monotonic() - self._began) * 1000))
            self._done.release()
            if not self.has_ended:
                self._go_on.acquire()

    def begin(self) -> None:
        """Let the run go on."""
        self._began = time.monotonic()
        self._go_on.release()

    def end(self) -> None:
        """Wait until the turn is over; the run may have ended with it."""
        while not self.has_ended and not self._done.acquire(timeout=_LOOK_S):
            self.has_ended = self.run.await_termination(0)

    def stop(self) -> None:
        """End the run, if it has not ended; another's failure is what counts."""
        self.has_ended = True
        self._go_on.release()
        with suppress(Exception):
            self.run.stop()
