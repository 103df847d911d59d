"""A running query: its progress, its events, and its end."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from braid.events import BatchDone, Event, Failed, Finished
from braid.model.errors import error_of
from braid.model.shown import Shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from braid.engine.feed import Feed
    from braid.events import Journal, Subscription


@dataclass(frozen=True, slots=True, repr=False)
class Progress(Shown):
    """A run so far; the counts are of this run, not of earlier ones on the checkpoint."""

    batch: int | None = None
    batches: int = 0
    input_rows: int = 0
    late_rows: int = 0
    ahead_rows: int = 0
    null_rows: int = 0
    out_of_range_rows: int = 0
    bad_rows: int = 0
    output_rows: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    watermark: str | None = None

    def _facts(self) -> dict[str, object]:
        return {
            "last batch": "-" if self.batch is None else f"{self.batch:,}",
            "rows in": f"{self.input_rows:,}",
            "results": f"{self.output_rows:,}",
            "late": f"{self.late_rows:,}",
            "null": f"{self.null_rows:,}",
            "rows of state": f"{self.state_rows:,}",
            "watermark": self.watermark or "-",
        }

    def after(self, done: BatchDone) -> Progress:
        """The progress once a batch is done."""
        return replace(
            self,
            batch=done.batch,
            batches=self.batches + 1,
            input_rows=self.input_rows + done.input_rows,
            late_rows=self.late_rows + done.late_rows,
            ahead_rows=self.ahead_rows + done.ahead_rows,
            null_rows=self.null_rows + done.null_key_rows + done.null_time_rows,
            out_of_range_rows=self.out_of_range_rows + done.out_of_range_time_rows,
            bad_rows=self.bad_rows + done.bad_rows,
            output_rows=self.output_rows + done.output_rows,
            state_rows=done.state_rows,
            state_bytes=done.state_bytes,
            watermark=done.watermark,
        )


class Run(Shown):
    """A query that has been started."""

    def __init__(
        self,
        journal: Journal,
        close: Callable[[], None],
        clean_up: Callable[[], None],
        change_plan: Callable[[str, tuple[int, ...]], None],
    ) -> None:
        """Follow the events of `journal`; `close` lets go of what the run holds."""
        self._clean_up, self._change_plan = clean_up, change_plan
        self._journal = journal
        self._close = close
        self._progress = Progress()
        self._message = "running"
        self._began = time.monotonic()
        self._ending = threading.RLock()  # a listener to the end may wait for it
        self._is_ending = self._ended = False
        self._exception: Exception | None = None
        self._feed: Feed | None = None
        journal.listen(self._follow)

    def _facts(self) -> dict[str, object]:
        done = self._progress._facts()
        named = ("last batch", "rows in", "results")
        return {"status": self._message, **{name: done[name] for name in named}}

    def follow(self, feed: Feed) -> Run:
        """Take over a feed that has just been started."""
        self._feed = feed
        threading.Thread(target=self._watch, name="braid-watch", daemon=True).start()
        return self

    def _watch(self) -> None:
        """Take note of the run's end, though nobody waits for it."""
        with suppress(Exception):  # noted, and raised to those who wait
            self.await_termination()

    def _follow(self, event: Event) -> None:
        if isinstance(event, BatchDone):
            self._progress = self._progress.after(event)

    @property
    def progress(self) -> Progress:
        """What has been done so far."""
        return self._progress

    @property
    def is_active(self) -> bool:
        """Whether the run still goes on."""
        return not self._ended

    @property
    def is_waiting(self) -> bool:
        """Whether the run has read all files that there are, and waits for more."""
        return self.is_active and self._feed is not None and self._feed.is_waiting

    @property
    def exception(self) -> Exception | None:
        """The error that ended the run, if one did."""
        return self._exception

    @property
    def status(self) -> dict[str, Any]:
        """What the run does now: a message, whether it is active, and its last batch."""
        return {
            "message": "waits for files" if self.is_waiting else self._message,
            "is_active": self.is_active,
            "batch": self._progress.batch,
        }

    def events(self) -> list[dict[str, Any]]:
        """All events so far, as JSON objects."""
        return self._journal.records()

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every event from now on, in the engine's thread.

        The run waits for it, and ends if it raises an error.
        """
        self._journal.listen(listener)

    def subscribe(self, most: int = 10_000) -> Subscription:
        """The events from now on, to iterate over, as another thread has time for them.

        It never holds the run up: if more than `most` wait, the oldest are dropped, and an
        event `missed` tells how many.
        """
        return self._journal.subscribe(most)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the input is used up or the run is stopped, at most `timeout` seconds.

        Says whether the run has ended. Raises the error that ended it, if one did.
        """
        assert self._feed is not None, "a run has a feed from its start"
        try:
            if not self._feed.wait(timeout):
                return False
        except Exception as failure:
            self._end("failed", failure)
            raise
        self._end("input used up" if self._feed.is_used_up else "stopped")
        if self._exception is not None:
            raise self._exception
        return True

    def cleanup(self) -> None:
        """Have the results made that groups on disk owe, from the next batch on."""
        self._clean_up()

    def migrate(self, plan: str, workers: Iterable[int] = ()) -> None:
        """Have the plan changed to another, such as "((a b) c)", from the next batch on.

        It is that of all workers, unless some are named, by their numbers.
        """
        self._change_plan(plan, tuple(workers))

    def stop(self) -> None:
        """End the run after the batch at hand; it can be continued from its checkpoint."""
        assert self._feed is not None, "a run has a feed from its start"
        self._feed.stop()
        try:
            self.await_termination()
        finally:  # a second signal does not wait for the batch at hand
            self._end("stopped")

    def _end(self, reason: str, failure: Exception | None = None) -> None:
        """Tell of the end, and let go of all that the run holds; whoever comes second waits.

        What fails here is the run's failure, unless it has one, and keeps nothing from being
        let go of. The run is over only then: another may begin on its checkpoint.
        """
        with self._ending:
            if self._is_ending:
                return
            self._is_ending = True
            steps: list[Callable[[], None]] = [
                partial(self._journal.add, event) for event in self._last(reason, failure)
            ]
            signal: BaseException | None = None
            for step in (*steps, self._close):
                try:
                    step()
                except Exception as error:
                    failure = failure or error
                except BaseException as fault:
                    failure, signal = failure or error_of(fault), fault
            self._exception = failure
            self._message = reason if failure is None else f"failed: {_message(failure)}"
            self._ended = True
            if signal is not None:
                raise signal

    def _last(self, reason: str, failure: Exception | None) -> Iterator[Event]:
        """The events of the end."""
        done = self._progress
        if failure is not None:
            hint = getattr(failure, "hint", None) or ""
            yield Failed(done.batch, _message(failure), hint)
        elapsed_ms = round((time.monotonic() - self._began) * 1000)
        yield Finished(reason, done.batches, done.input_rows, done.output_rows, elapsed_ms)


def _message(failure: Exception) -> str:
    return getattr(failure, "message", None) or str(failure)
