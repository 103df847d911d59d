"""Starting Spark from a command: its chatter goes to a file, so that ours can be read."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from braid.cli.stopping import signals_held
from braid.model.errors import BraidError
from braid.spark.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession


_PACKAGES = "spark.jars.packages"


def start_spark(master: str, config: Mapping[str, str] | None = None) -> SparkSession:
    """A session on `master`; what the JVM writes to standard error goes to a file."""
    with waiting("starting Spark …"), signals_held(), _standard_error_to_file() as log:
        try:
            spark = session(master, config)
        except BraidError:
            raise
        except Exception as error:
            # Java's own words come after a line that only says that Java was called.
            _, called, cause = str(error).strip().partition("JavaSparkContext.\n: ")
            reason = (cause if called else str(error).strip()).splitlines()[0]
            packages = ["--packages"] if _PACKAGES in (config or {}) else []
            conf = ["--conf"] if len(config or {}) > len(packages) else []
            options = " and ".join(["--master", *conf, *packages])
            raise BraidError(
                f"Spark did not start on {master!r}: {reason}",
                hint=f"check {options}; what Spark wrote is in {log}",
            ) from None
        # They would print stack traces when Spark dies, which the run tells in a sentence.
        logging.getLogger().addFilter(_is_not_of_gateway)
        logging.getLogger("py4j").propagate = False
        setattr(spark.sparkContext._accumulatorServer, "handle_error", _say_nothing)  # noqa: B010
        atexit.register(Path(log).unlink, missing_ok=True)
        return spark


def _is_not_of_gateway(record: logging.LogRecord) -> bool:
    """Whether a record comes from elsewhere than the way to Java, which logs as nobody."""
    return record.module != "java_gateway"


def _say_nothing(*error: object) -> None:
    pass


def spark_config(conf: Sequence[str], packages: str | None) -> dict[str, str]:
    """The settings that `--conf KEY=VALUE` and `--packages` name, as spark-submit has them.

    >>> spark_config(["spark.executor.memory=2g"], "org.x:y:1")
    {'spark.executor.memory': '2g', 'spark.jars.packages': 'org.x:y:1'}
    """
    config = {}
    for option in conf:
        key, equals, value = option.partition("=")
        if not (key and equals):
            raise BraidError(f"cannot read --conf {option!r}", hint="write --conf KEY=VALUE")
        config[key] = value
    if packages is not None:
        config[_PACKAGES] = packages
    return config


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
