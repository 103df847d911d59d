"""One Spark session for all tests that can share one; a JVM has room for no second master."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import braid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = braid.session("local[2]")
    yield session
    session.stop()
