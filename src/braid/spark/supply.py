"""The streams of a run on Spark: pinned workers, and what brings them rows."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from braid.cql import columns_of_stream
from braid.engine.feed import FolderFeed
from braid.engine.shelf import Shelf
from braid.model.query import time_column
from braid.record.names import NameList
from braid.spark.bad_rows import forbid_sharing, unshared
from braid.spark.cluster import SparkCluster, SparkRows
from braid.spark.feed import SparkFeed
from braid.spark.paths import spark_path
from braid.spark.pinning import drop_anchor
from braid.spark.session import described
from braid.spark.split import Splits
from braid.spark.union import StreamUnion
from braid.worker.memory_tier import reclaim_memory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame

    from braid.engine.feed import Feed
    from braid.engine.loop import BatchLoop
    from braid.engine.sources import Reading
    from braid.model.query import Query, TimeNames
    from braid.plan.join_plan import JoinPlan
    from braid.record.checkpoint import Checkpoint
    from braid.spark.sources import SparkSources
    from braid.spark.union import Gathered


@dataclass(frozen=True, slots=True)
class SparkSupply:
    """DataFrames or folders, from where a checkpoint stands."""

    sources: SparkSources
    checkpoint: Checkpoint

    def check_offsets(self) -> None:
        """Raise an error if Spark's part of the checkpoint does not belong to ours."""
        if self.sources.frames:
            self.checkpoint.check_offsets(self.checkpoint.last_commit())

    def note_columns(self) -> None:
        """Have the checkpoint remember the columns of folders."""
        readers = self.sources.readers
        if readers:
            columns = {name: reader.columns.to_json() for name, reader in readers.items()}
            self.checkpoint.note_columns(columns)

    def cluster(
        self,
        plan: JoinPlan,
        *,
        workers: int,
        name: str,
        memory_bytes: int | None,
        keeps_bad: bool,
    ) -> SparkCluster:
        """Pin workers to Spark's executors; what dead runs left in memory here is removed."""
        spark = self.sources.spark
        reclaim_memory(self.checkpoint.folder)
        with described(spark, f"{name}: place the workers"):
            anchor = drop_anchor(spark, workers)
        return SparkCluster(
            spark=spark,
            anchor=anchor,
            checkpoint=self.checkpoint.folder,
            orders=self.checkpoint.orders,
            incarnation=f"{self.checkpoint.id}-{uuid.uuid4().hex[:8]}",
            splits=Splits(union_of(self.sources, plan, keeps_bad=keeps_bad)),
            name=name,
            memory_bytes=memory_bytes,
        )

    def feed(self, loop: BatchLoop, cluster: SparkCluster, reading: Reading) -> Feed:
        """Begin to bring batches."""
        if self.sources.readers:
            return self._folder_feed(loop, cluster, reading)
        union, frames = cluster.splits.union, self.sources.frames
        writer = union.together(frames).writeStream.queryName(cluster.name)
        writer = writer.option("checkpointLocation", spark_path(self.checkpoint.spark))
        if reading.available_now:
            writer = writer.trigger(availableNow=True)
        elif reading.interval_s:
            writer = writer.trigger(
                processingTime=f"{round(reading.interval_s * 1000)} milliseconds"
            )
        with unshared(self.sources.spark) if cluster.keeps_bad else nullcontext():
            return SparkFeed(
                writer,
                loop,
                cluster,
                is_bounded=reading.available_now,
                interval_s=reading.interval_s,
            )

    def _folder_feed(
        self, loop: BatchLoop, cluster: SparkCluster, reading: Reading
    ) -> FolderFeed:
        assert reading.names is not None, "the names of files that were read are kept"
        if cluster.keeps_bad:
            forbid_sharing(self.sources.spark)
        folders = {name: reader.stream for name, reader in self.sources.readers.items()}
        shelf = Shelf.browse(folders, reading.names.read, follows=reading.follows)
        plan = loop.engine.plan
        needed = needed_columns(self.sources, plan.query, plan.wire.event_time)

        def read(taken: Mapping[str, list[str]]) -> SparkRows:
            return SparkRows(self.sources.spark, partial(self._read, cluster, needed, taken))

        return FolderFeed(shelf, reading.names, read, loop, reading.interval_s)

    def _read(
        self,
        cluster: SparkCluster,
        needed: Mapping[str, list[str]],
        taken: Mapping[str, list[str]],
    ) -> Gathered:
        """The rows of some files."""
        frames = {
            name: reader.read(taken[name], needed[name], keeps_bad=cluster.keeps_bad)
            for name, reader in self.sources.readers.items()
        }
        return cluster.splits.union.apart(frames)

    def read_files(self, position: dict[str, Any] | None) -> NameList | None:
        """The files that have been read, if streams are folders."""
        if not self.sources.readers:
            return None
        return NameList.open(self.checkpoint.names, position)

    def results(self, folder: Path) -> DataFrame:
        """Results that workers have staged in a folder."""
        reader = self.sources.spark.read.option(
            "__globPaths__", "false"
        )  # brackets are no pattern
        return reader.parquet(spark_path(folder))


def union_of(sources: SparkSources, plan: JoinPlan, *, keeps_bad: bool) -> StreamUnion:
    """How rows of the query's streams are gathered; it is the same for all plans."""
    computed = {name: each for name, each in sources.times.items() if each.sql is not None}
    times = {name: each.sql for name, each in computed.items() if each.sql}
    shown = needed_columns(sources, plan.query, plan.wire.event_time) if keeps_bad else None
    return StreamUnion.of(plan, sources.columns, times, shown)


def needed_columns(
    sources: SparkSources, query: Query, event_time: TimeNames
) -> dict[str, list[str]]:
    """The sources' own columns that a query uses, under any of their aliases."""
    columns = {source: schema.names for source, schema in sources.own.items()}
    needed: dict[str, set[str]] = {source: set() for source in columns}
    for number, stream in enumerate(query.streams):
        needed[stream.source] |= columns_of_stream(query, number)
        needed[stream.source].add(time_column(event_time, number).column)
    for source, when in sources.times.items():
        needed[source] |= when.needs
    return {
        source: [name for name in names if name in needed[source]]
        for source, names in columns.items()
    }
