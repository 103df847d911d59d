"""What brings batches to the engine: folders, read by a thread of our own."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from braid.events import FileAwaited

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from braid.engine.cluster import BatchInput
    from braid.engine.engine import Prepared
    from braid.engine.loop import BatchLoop
    from braid.engine.shelf import Shelf
    from braid.record.names import NameList


class Feed(Protocol):
    """What brings batches to the coordinator, in a thread of its own or of Spark's."""

    def wait(self, timeout_s: float | None) -> bool:
        """Whether the feed has ended, after at most this time; raises what ended it."""

    @property
    def is_used_up(self) -> bool:
        """Whether a feed that has ended has brought all of its input."""

    @property
    def is_waiting(self) -> bool:
        """Whether it has brought all that has come, and more may come."""

    def stop(self) -> None:
        """End after the batch at hand."""


class BatchPace:
    """Lets a batch begin at most once in an interval."""

    def __init__(self, interval_s: float) -> None:
        """Let the first one begin at once."""
        self._interval_s = interval_s
        self._last: float | None = None

    def wait(self, stopping: threading.Event) -> None:
        """Wait for the next batch's time, or for a stop."""
        if self._last is not None and self._interval_s:
            stopping.wait(max(0.0, self._last + self._interval_s - time.monotonic()))
        self._last = time.monotonic()


_LISTING_SHARE = 10
_LEAST_PAUSE_S = 0.5
"""Folders that are followed are listed so often, and for a tenth of the time at most."""

_AWAITED_S = 5.0  # after so long it is told which half-written file holds its stream up


class ThreadFeed:
    """Brings batches in a thread of its own, until there are no more or until it is stopped."""

    is_waiting = False

    def __init__(self, loop: BatchLoop) -> None:
        """Begin at once: whatever `_bring` needs is there."""
        self._loop = loop
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._used_up = False
        # Not the thread's own end: a signal during `Thread.join` makes Python take it for over.
        self._ended = threading.Event()
        threading.Thread(target=self._work, name="braid", daemon=True).start()

    def _work(self) -> None:
        try:
            self._bring()
            if not self._stopping.is_set():
                self._loop.end()
                self._used_up = True
        except BaseException as fault:
            self._failure = self._loop.failure(fault)
        finally:
            self._ended.set()

    def _bring(self) -> None:
        """Take all batches, or those before a stop."""
        raise NotImplementedError

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


class FolderFeed(ThreadFeed):
    """Reads folders batch by batch until their files are used up, or until it is stopped."""

    def __init__(
        self,
        shelf: Shelf,
        names: NameList,
        read: Callable[[Mapping[str, list[str]]], BatchInput],
        loop: BatchLoop,
        interval_s: float = 0.0,
    ) -> None:
        """Start reading; `read` has the rows of some files."""
        self._pace = BatchPace(interval_s)
        self._awaited: dict[tuple[str, str], float] = {}
        self._shelf, self._names = shelf, names
        self._read = read
        self._read_bytes = 0
        self._look_at = 0.0
        loop.engine.ask_unread = self._unread_rows
        super().__init__(loop)

    def _bring(self) -> None:
        with ThreadPoolExecutor(1) as ahead:
            upcoming = self._take_next(ahead)
            while not self._stopping.is_set():
                if upcoming is None and not self._shelf.follows:
                    break
                self.is_waiting = upcoming is None
                if upcoming is None:
                    self._stand_by()
                    upcoming = self._take_next(ahead)
                    continue
                taken, (*before, last) = upcoming
                for each in before:
                    self._loop.fill_at_once(each.result())
                job = last.result()
                upcoming = self._take_next(ahead)
                self._pace.wait(self._stopping)
                if self._stopping.is_set():
                    break
                self._read_bytes += self._shelf.size(taken)
                self._loop.on_files(job, self._names.append(taken))

    def _stand_by(self) -> None:
        """Show what need not wait for more rows, and look for files that have come."""
        self._loop.take_waiting()
        self._loop.close_moments()
        self._look()
        if self._shelf.is_empty():
            self._stopping.wait(self._look_at - time.monotonic())

    def _look(self) -> None:
        """Put files that have come on the shelf; tell which half-written ones are awaited."""
        began = time.monotonic()
        awaited = self._shelf.restock(time.time())
        now = time.monotonic()
        self._look_at = now + max(_LEAST_PAUSE_S, _LISTING_SHARE * (now - began))
        self._awaited = {each: self._awaited.get(each, now) for each in awaited}
        for (source, name), since in self._awaited.items():
            if now - since >= _AWAITED_S:
                self._loop.engine.journal.add(FileAwaited(source, name))
                self._awaited[source, name] = math.inf  # told once

    def _unread_rows(self, read_rows: int) -> float | None:
        """As many rows to a byte as there were so far.

        Of a folder that is not followed, all files were there at the start: what is left can
        only become less, and says nothing of how fast rows come.
        """
        if not self._read_bytes or not self._shelf.follows:
            return None
        left_bytes = self._shelf.listed_bytes - self._read_bytes
        return left_bytes * read_rows / self._read_bytes

    def _take_next(
        self, ahead: ThreadPoolExecutor
    ) -> tuple[dict[str, list[str]], list[Future[Prepared]]] | None:
        """The next files, whose jobs Spark plans while it evaluates those before them."""
        if self._shelf.follows and time.monotonic() >= self._look_at:
            self._look()  # how many there are tells how far the query is behind
        if self._shelf.is_empty():
            return None
        taken = self._shelf.take()
        jobs = self._loop.engine.preparing(self._read(taken))
        return taken, [ahead.submit(job) for job in jobs]
