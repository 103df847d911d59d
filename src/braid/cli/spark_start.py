"""Starting Spark from a command: its chatter goes to a file, so that ours can be read."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from braid.cli.stopping import heed_signals
from braid.model.errors import BraidError
from braid.runtime.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def start_spark(master: str) -> SparkSession:
    """A session on `master`; what the JVM writes to standard error goes to a file."""
    with waiting("starting Spark …"), _standard_error_to_file() as log:
        try:
            spark = session(master)
        except BraidError:
            raise
        except Exception as error:
            reason = str(error).strip().splitlines()[0]
            raise BraidError(
                f"Spark did not start on {master!r}: {reason}",
                hint=f"check --master; what Spark wrote is in {log}",
            ) from None
        heed_signals()
        # It would print a stack trace when Spark dies, which the run tells in a sentence.
        setattr(spark.sparkContext._accumulatorServer, "handle_error", _say_nothing)  # noqa: B010
        atexit.register(Path(log).unlink, missing_ok=True)
        return spark


def _say_nothing(*error: object) -> None:
    pass


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Show on a terminal, and nowhere else, what it is that takes so long."""
    if not sys.stderr.isatty():
        yield
        return
    # A handle of its own, as standard error may go elsewhere meanwhile.
    with os.fdopen(os.dup(2), "w") as screen, Console(file=screen).status(words):
        yield


@contextmanager
def _standard_error_to_file() -> Iterator[str]:
    """Processes started in this block inherit the file as their standard error."""
    handle, path = tempfile.mkstemp(prefix="braid-spark-", suffix=".log")
    ours = os.dup(2)
    os.dup2(handle, 2)
    try:
        yield path
    finally:
        os.dup2(ours, 2)
        os.close(ours)
        os.close(handle)
