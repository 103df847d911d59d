"""Queries over tables, without Spark: for unit tests of what a query means."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from braid import cql
from braid.front.query import Question, used_streams
from braid.front.sinks import MemorySink
from braid.local.sources import LocalSources, read_tables
from braid.model.duration import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from braid.cql.fluent import Draft
    from braid.front.query import ContinuousQuery


@dataclass(frozen=True, slots=True)
class Local:
    """Braid in this process: the same plans, workers and checkpoints, and no Java.

    Filters and columns are computed where that is known to be what Spark computes; anything
    else is refused by its name. `now_us` may tell the time in place of the clock.
    """

    workers: int = 2
    now_us: Callable[[], int] | None = None

    def query(
        self,
        text: str | Draft,
        streams: Mapping[str, pa.Table | Sequence[pa.Table]] | None = None,
        *,
        event_time: str | Mapping[str, str],
        lateness: str = "0 seconds",
        idle_timeout: str | None = None,
        **more_streams: pa.Table | Sequence[pa.Table],
    ) -> ContinuousQuery:
        """Bind a query to tables, as `braid.query` binds it to streams.

        A stream is a table, or a list of tables, of which each comes in a batch of its own.
        """
        text = text if isinstance(text, str) else text.text
        given = {**(streams or {}), **more_streams}
        cql.check_sources(text, list(given))
        named = used_streams(text, given)
        used = {name: stream for name, stream in given.items() if name in named}
        times = {
            name: event_time if isinstance(event_time, str) else event_time[name]
            for name in used
        }
        sources = LocalSources(read_tables(used), times, self.workers, self.now_us)
        return Question(
            text,
            used,
            times,
            parse_duration(lateness),
            None if idle_timeout is None else parse_duration(idle_timeout),
            lambda known: sources,
        ).bound()

    def run(
        self,
        text: str | Draft,
        streams: Mapping[str, pa.Table | Sequence[pa.Table]] | None = None,
        *,
        event_time: str | Mapping[str, str],
        lateness: str = "0 seconds",
        **more_streams: pa.Table | Sequence[pa.Table],
    ) -> pa.Table:
        """All results of a query over tables."""
        given = {**(streams or {}), **more_streams}
        query = self.query(text, given, event_time=event_time, lateness=lateness)
        sink = MemorySink()
        with tempfile.TemporaryDirectory(prefix="braid-local-") as folder:
            query.start(checkpoint=Path(folder, "checkpoint"), sink=sink).await_termination()
        return sink.table()


def local(workers: int = 2, now_us: Callable[[], int] | None = None) -> Local:
    """Braid in this process, on so many workers, for unit tests of queries."""
    return Local(workers, now_us)
