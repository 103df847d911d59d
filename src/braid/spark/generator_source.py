"""Synthetic streams as Spark streaming sources, `braid_generator` and `braid_nexmark`.

    register(spark)
    spark.readStream.format("braid_generator")
        .option("spec", dump_spec(spec)).option("stream", "a").option("seconds", 600).load()
    spark.readStream.format("braid_nexmark")
        .option("stream", "bid").option("seconds", 600).load()

| option | meaning |
|---|---|
| `spec` | what the streams look like, as JSON; NEXMark has defaults |
| `stream` | which of its streams: of NEXMark `person`, `auction` or `bid` |

and those of `braid.spark.slice_reader.Pace`, where also the reading is. What the rows are is
defined in `braid.workload`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema

from braid.spark.slice_reader import PACE_OPTIONS, SlicePace, SliceReader, check_options
from braid.workload import batches, nexmark, parse_nexmark_spec, parse_spec, schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

OPTIONS = ("spec", "stream", *PACE_OPTIONS)


def register(spark: SparkSession) -> None:
    """Make the formats `braid_generator` and `braid_nexmark` known to a session."""
    spark.dataSource.register(BraidGenerator)
    spark.dataSource.register(BraidNexmark)


class BraidGenerator(DataSource):
    """The format `braid_generator`: the streams of a `WorkloadSpec`."""

    @classmethod
    def name(cls) -> str:
        """The word for `.format(...)`."""
        return "braid_generator"

    def schema(self) -> StructType:
        """The columns of `braid.workload.schema`, as Spark has them."""
        generator_reader(self.options)  # so that what is wrong with them is said at once
        return from_arrow_schema(schema(parse_spec(self.options["spec"])))

    def streamReader(self, schema: StructType) -> SliceReader:
        """A reader of the stream; Spark keeps one for planning, and one in each task."""
        return generator_reader(self.options)


class BraidNexmark(DataSource):
    """The format `braid_nexmark`: the streams of a `NexmarkSpec`."""

    @classmethod
    def name(cls) -> str:
        """The word for `.format(...)`."""
        return "braid_nexmark"

    def schema(self) -> StructType:
        """The columns of `braid.workload.nexmark.SCHEMAS`, as Spark has them."""
        nexmark_reader(self.options)  # so that what is wrong with them is said at once
        return from_arrow_schema(nexmark.SCHEMAS[self.options["stream"]])

    def streamReader(self, schema: StructType) -> SliceReader:
        """A reader of the stream; Spark keeps one for planning, and one in each task."""
        return nexmark_reader(self.options)


def generator_reader(options: Mapping[str, str]) -> SliceReader:
    """A reader for the options of `braid_generator`, which are checked."""
    check_options(options, OPTIONS, needed=("spec", "stream"))
    spec = parse_spec(options["spec"])
    stream = spec.stream(options["stream"])
    return SliceReader(SlicePace.read(options), partial(batches, spec, stream.name))


def nexmark_reader(options: Mapping[str, str]) -> SliceReader:
    """A reader for the options of `braid_nexmark`, which are checked."""
    check_options(options, OPTIONS, needed=("stream",))
    spec = parse_nexmark_spec(options.get("spec", "{}"))
    stream = options["stream"]
    nexmark.stream_schema(stream)
    return SliceReader(SlicePace.read(options), partial(nexmark.batches, spec, stream))
