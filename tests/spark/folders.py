"""A folder of Parquet files as a stream of either sort, a file a batch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import braid

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from braid.spark.sources import Stream


def date(path: Path, number: int) -> None:
    """Make files with higher numbers younger, for Spark takes them by age."""
    os.utime(path, (1e9 + number, 1e9 + number))


def stream_of(folder: Path, spark: SparkSession | None, schema: StructType | str) -> Stream:
    """Read by ourselves, or by Spark if there is one."""
    if spark is None:
        return braid.files(folder)
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))
