"""A running query: its progress, its events, and its end."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from braid.events import BatchDone, Event, Failed, FileAwaited, Finished
from braid.model.errors import BraidError
from braid.model.shown import Shown
from braid.runtime.behind import rows_between
from braid.runtime.faults import error_of, explain_fault, lost_spark, unlogged_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from concurrent.futures import Future

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from braid.events import Journal
    from braid.runtime.coordinator import Coordinator, Prepared
    from braid.runtime.shelf import Shelf
    from braid.runtime.union import Gathered
    from braid.state.names import NameList


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
        """Call `listener` with every event from now on, in the engine's thread."""
        self._journal.listen(listener)

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


class _Pace:
    """Lets a batch begin at most once in an interval."""

    def __init__(self, interval_s: float) -> None:
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


class FolderFeed:
    """Reads folders batch by batch until their files are used up, or until it is stopped."""

    def __init__(
        self,
        shelf: Shelf,
        names: NameList,
        read: Callable[[Mapping[str, list[str]]], Gathered],
        coordinator: Coordinator,
        spark: SparkSession,
        interval_s: float = 0.0,
    ) -> None:
        """Start reading; `read` has the rows of some files."""
        self._pace = _Pace(interval_s)
        self._awaited: dict[tuple[str, str], float] = {}
        self._shelf, self._names = shelf, names
        self._read, self._coordinator, self._spark = read, coordinator, spark
        self._read_bytes = 0
        self._look_at = 0.0
        coordinator.ask_for_unread(self._unread_rows)
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._used_up = self._is_waiting = False
        # Not the thread's own end: a signal during `Thread.join` makes Python take it for over.
        self._ended = threading.Event()
        threading.Thread(target=self._work, name="braid", daemon=True).start()

    def _work(self) -> None:
        try:
            with ThreadPoolExecutor(1) as ahead:
                upcoming = self._take_next(ahead)
                while not self._stopping.is_set():
                    if upcoming is None and not self._shelf.follows:
                        break
                    self._is_waiting = upcoming is None
                    if upcoming is None:
                        self._stand_by()
                        upcoming = self._take_next(ahead)
                        continue
                    taken, (*before, last) = upcoming
                    for each in before:
                        self._coordinator.fill_at_once(self._spark, each.result())
                    job = last.result()
                    upcoming = self._take_next(ahead)
                    self._pace.wait(self._stopping)
                    if self._stopping.is_set():
                        break
                    self._read_bytes += self._shelf.size(taken)
                    self._coordinator.on_files(job, self._names.append(taken))
            if not self._stopping.is_set():
                self._coordinator.end(self._spark)
                self._used_up = True
        except BaseException as fault:
            self._failure = lost_spark(self._spark) or error_of(fault)
        finally:
            self._ended.set()

    def _stand_by(self) -> None:
        """Show what need not wait for more rows, and look for files that have come."""
        self._coordinator.take_waiting(self._spark)
        self._coordinator.close_moments(self._spark)
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
                self._coordinator.journal.add(FileAwaited(source, name))
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
        jobs = self._coordinator.preparing(partial(self._read, taken), self._spark)
        return taken, [ahead.submit(job) for job in jobs]

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for the thread; a failure in it is raised here."""
        ended = self._ended.wait(timeout_s)
        if self._failure is not None:
            raise self._failure
        return ended

    @property
    def is_used_up(self) -> bool:
        """Whether all files have been read and all that they gave has been shown."""
        return self._used_up

    @property
    def is_waiting(self) -> bool:
        """Whether all files that there are have been read."""
        return self._is_waiting

    def stop(self) -> None:
        """Take no further batch."""
        self._stopping.set()


_SILENCE_S = 1.0  # so long may rows that can go on wait for a batch to do so


class SparkFeed:
    """One streaming query of Spark's, over the union of all streams.

    Sources may fall silent while groups move, or while workers have more than their share of a
    batch. Rows that wait for them must not wait for more rows to come, so the feed brings
    batches without rows then.
    """

    def __init__(
        self,
        writer: DataStreamWriter,
        coordinator: Coordinator,
        spark: SparkSession,
        *,
        is_bounded: bool,
        interval_s: float = 0.0,
    ) -> None:
        """Start the query; it ends by itself if it `is_bounded`."""
        self._is_bounded, self._used_up = is_bounded, False
        # Spark's own interval is one between multiples of it, and none of a bounded query.
        self._pace, self._ending = _Pace(interval_s), threading.Event()
        self._coordinator, self._spark = coordinator, spark
        self._at_work = threading.Lock()
        self._stopping = False
        self._failure: Exception | None = None
        coordinator.relocation.on_arrival = self._in_silence
        coordinator.ask_for_unread(self._unread_rows)
        self._query = writer.foreachBatch(self._on_batch).start()
        self._let_go_on()

    def _on_batch(self, rows: DataFrame, number: int) -> None:
        self._pace.wait(self._ending)
        with self._at_work:
            if self._stopping:
                # Returning would tell Spark that the batch is done.
                raise BraidError(f"stopped before batch {number}")
            with self._noting():
                self._coordinator.on_source_batch(rows, number)
        self._let_go_on()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Keep what fails here as an error, because what Spark hands on of it is a text."""
        try:
            yield
        except Exception as fault:
            self._failure = fault
            raise
        except BaseException as fault:
            self._failure = error_of(fault)
            raise self._failure from fault

    def _unread_rows(self, read_rows: int) -> float | None:
        """What Spark said of its sources when it had taken the batch before this one."""
        query = getattr(self, "_query", None)  # a first batch may come before it has a name
        progress = None if query is None else query.lastProgress
        if progress is None:
            return None
        return rows_between((each.endOffset, each.latestOffset) for each in progress.sources)

    def _let_go_on(self) -> None:
        """Have rows go on that wait for no more than a batch."""
        if not self._stopping and self._coordinator.can_go_on:
            self._in_silence()

    def _in_silence(self) -> None:
        """Have them do so unless another batch comes meanwhile."""
        timer = threading.Timer(
            _SILENCE_S, self._take_waiting, [self._coordinator.commit.batch]
        )
        timer.daemon = True
        timer.start()

    def _take_waiting(self, last: int) -> None:
        try:
            with self._at_work, self._noting():
                is_silent = self._coordinator.commit.batch == last
                if is_silent and not self._stopping:
                    self._coordinator.take_waiting(self._spark)
            if is_silent:
                self._let_go_on()
        except Exception:  # noted
            self._query.stop()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for Spark's query; what ended it is raised here."""
        try:
            if timeout_s is None:
                self._query.awaitTermination()
            # Spark takes fractions of a second, whatever its types say.
            elif not self._query.awaitTermination(max(timeout_s, 0.001)):  # type: ignore[arg-type]
                return False
            if not self._stopping and (lost := lost_spark(self._spark)):
                raise lost
            with self._at_work:
                if not self._stopping and self._failure is None and self._has_read_all():
                    with self._noting():
                        self._coordinator.end(self._spark)
                    self._used_up = True
                self._stopping = True
            if self._failure is not None:
                raise self._failure
            return True
        except Exception as fault:
            lost = lost_spark(self._spark)
            if lost is not None:
                raise lost from None
            if self._failure is not None:
                raise self._failure from None
            if self._stopping:
                return True
            reason = explain_fault(fault, keeps_bad=self._coordinator.splits.union.keeps_bad)
            error = reason if isinstance(reason, BraidError) else BraidError(reason)
            raise error from fault

    def _has_read_all(self) -> bool:
        """Whether Spark's query has ended by itself, and nobody has stopped it.

        One that nobody stops ends only if it is bounded, once it has found no new data.
        """
        return self._is_bounded and bool(self._query._jsq.streamingQuery().noNewData())

    @property
    def is_used_up(self) -> bool:
        """Whether all that the sources had has been read and shown."""
        return self._used_up

    @property
    def is_waiting(self) -> bool:
        """Never, as far as we know: Spark waits for its sources by itself."""
        return False

    def stop(self) -> None:
        """Stop Spark's query between two batches; it would cut one off in the middle."""
        if lost_spark(self._spark) is not None:
            return
        with unlogged_end(self._spark):
            self._stopping = True
            self._ending.set()
            with self._at_work:
                pass  # the batch at hand is done
            # Not under the lock: Spark waits for a batch that has come to our door meanwhile.
            self._query.stop()
