"""One Spark session for all tests that can share one; a JVM has room for no second master."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

import braid
from tests.spark.kill_harness import Job
from tests.spark.kill_workloads import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = braid.session("local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def quick_starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Half of a start is Java reading Spark's classes: one does it, the others share them."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # which all processes of a test run have in common
    archive = folder / "classes.jsa"
    with open(folder / "classes.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            write = {"SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={archive}"}
            with Job(folder / "job", 0, GROUPS, batches=2, rows=100, environ=write) as job:
                job.finish()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", f"-XX:SharedArchiveFile={archive}")
        yield
