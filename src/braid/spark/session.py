"""A Spark session that suits Braid: pinned workers need settings that only a start can make."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from braid.model.errors import BraidError
from braid.spark.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SETTINGS = {
    # A worker's task must go to the executor that holds its state, not to where most of its
    # input happens to lie, and is worth waiting for: longer than another worker's task may
    # take there, since elsewhere the state would have to be made again from the log.
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.locality.wait": "3s",
    "spark.locality.wait.process": "30s",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
    # Over TCP, Spark and a Python worker wait for each other's acknowledgements: 40 ms a task.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


_DESCRIPTION = "spark.job.description"
PINNING = ("spark.shuffle.reduceLocality.enabled", "spark.locality.wait.process")
"""The settings without which workers do not stay with their state."""
_WAIT, _USUAL_MS = "spark.locality.wait", 3000
"""The wait of tasks for any kind of place, and how long it is by default."""
_UNIT_MS = {"": 1, "us": 1e-3, "ms": 1, "s": 1e3, "m": 6e4, "min": 6e4, "h": 36e5, "d": 864e5}
_CONNECT = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")  # to PySpark, they matter if set


def session(
    master: str = "local[*]", config: Mapping[str, str] | None = None, **settings: str
) -> SparkSession:
    """Start Spark, or join the session that is running, and leave its settings as they are.

    `settings` are Spark's own, with underscores for dots: `spark_executor_memory="2g"`. Those
    of `config` have their names as they are: `{"spark.executor.memory": "2g"}`.
    """
    given = {name.replace("_", "."): value for name, value in settings.items()}
    given |= config or {}
    _refuse_connect(given)
    builder = SparkSession.builder
    if SparkContext._active_spark_context is None:
        find_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if master.startswith("local-cluster"):
            os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
        builder = builder.master(master).appName("braid")
        for name, value in {**SETTINGS, **_collector()}.items():
            builder = builder.config(name, value)
    for name, value in given.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _refuse_connect(settings: Mapping[str, str]) -> None:
    """Raise an error where Spark would start as a client of a server elsewhere."""
    asking = [name for name in _CONNECT if name in os.environ]
    what, cure = "the environment", f"unset {' and '.join(asking)}"
    if "spark.remote" in settings:
        what, cure = "the setting spark.remote", "leave it out"
    elif not asking:
        return
    raise BraidError(f"{what} asks for Spark Connect, which Braid cannot run on", hint=cure)


def unpinned(settings: Mapping[str, str]) -> list[str]:
    """The settings that a session lacks for its workers to stay with their state.

    >>> unpinned({"spark.locality.wait.process": "10s"})
    ['spark.shuffle.reduceLocality.enabled=false']
    """
    locality, wait = PINNING
    lacking = [locality] if settings.get(locality) != SETTINGS[locality] else []
    if wait not in settings and _milliseconds(settings.get(_WAIT, "")) <= _USUAL_MS:
        lacking.append(wait)
    return [f"{name}={SETTINGS[name]}" for name in lacking]


def _milliseconds(text: str) -> float:
    """A time as Spark's settings have it; without a unit it is in milliseconds.

    >>> _milliseconds("30s"), _milliseconds("500")
    (30000.0, 500.0)
    """
    found = re.fullmatch(r"(\d+)([a-z]*)", text.strip().lower())
    return float(found[1]) * _UNIT_MS.get(found[2], 0.0) if found else 0.0


def _collector() -> dict[str, str]:
    """A collector for throughput: batches leave little behind, and no pause is too long.

    Java does not start with two, so one that the environment names stays alone.
    """
    named = (os.environ.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"))
    if any("GC" in options for options in named):
        return {}
    return {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}


def quiet(spark: SparkSession, workers: int) -> None:
    """Settings of a session in which batches are evaluated."""
    # Adaptive execution would merge small partitions, and with them two workers.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", str(workers))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000000")


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Have Spark's pages describe the jobs of this block, in this thread."""
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(text)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # takes None


def collect_garbage() -> None:
    """Have Java collect its garbage now, where nothing is timed, if Spark runs."""
    context = SparkContext._active_spark_context
    if context is not None and context._jvm is not None:
        context._jvm.System.gc()
