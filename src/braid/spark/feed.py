"""What brings batches to the engine: a streaming query of Spark's."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from braid.control.behind import rows_between
from braid.engine.feed import BatchPace
from braid.model.errors import BraidError, error_of
from braid.spark.faults import explain_fault, lost_spark, unlogged_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from braid.engine.loop import BatchLoop
    from braid.spark.cluster import SparkCluster

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
        loop: BatchLoop,
        cluster: SparkCluster,
        *,
        is_bounded: bool,
        interval_s: float = 0.0,
    ) -> None:
        """Start the query; it ends by itself if it `is_bounded`."""
        self._is_bounded, self._used_up = is_bounded, False
        # Spark's own interval is one between multiples of it, and none of a bounded query.
        self._pace, self._ending = BatchPace(interval_s), threading.Event()
        self._loop, self._cluster = loop, cluster
        self._at_work = threading.Lock()
        self._stopping = False
        self._failure: Exception | None = None
        loop.engine.beside.on_arrival = self._in_silence
        loop.engine.ask_unread = self._unread_rows
        self._query = writer.foreachBatch(self._on_batch).start()
        self._let_go_on()

    def _on_batch(self, rows: DataFrame, number: int) -> None:
        self._pace.wait(self._ending)
        with self._at_work:
            if self._stopping:
                # Returning would tell Spark that the batch is done.
                raise BraidError(f"stopped before batch {number}")
            with self._noting():
                self._loop.on_source_batch(self._cluster.rows(rows), number)
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
        if not self._stopping and self._loop.can_go_on:
            self._in_silence()

    def _in_silence(self) -> None:
        """Have them do so unless another batch comes meanwhile."""
        timer = threading.Timer(
            _SILENCE_S, self._take_waiting, [self._loop.engine.commit.batch]
        )
        timer.daemon = True
        timer.start()

    def _take_waiting(self, last: int) -> None:
        try:
            with self._at_work, self._noting():
                is_silent = self._loop.engine.commit.batch == last
                if is_silent and not self._stopping:
                    self._loop.take_waiting()
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
            if not self._stopping and (lost := lost_spark(self._cluster.spark)):
                raise lost
            with self._at_work:
                if not self._stopping and self._failure is None and self._has_read_all():
                    with self._noting():
                        self._loop.end()
                    self._used_up = True
                self._stopping = True
            if self._failure is not None:
                raise self._failure
            return True
        except Exception as fault:
            lost = lost_spark(self._cluster.spark)
            if lost is not None:
                raise lost from None
            if self._failure is not None:
                raise self._failure from None
            if self._stopping:
                return True
            reason = explain_fault(fault, keeps_bad=self._cluster.keeps_bad)
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
        if lost_spark(self._cluster.spark) is not None:
            return
        with unlogged_end(self._cluster.spark):
            self._stopping = True
            self._ending.set()
            with self._at_work:
                pass  # the batch at hand is done
            # Not under the lock: Spark waits for a batch that has come to our door meanwhile.
            self._query.stop()
