"""Reading Spark's errors: what a person can put right, and what is worth another try."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.logger import PySparkLogger

from braid.engine.folder import MEND
from braid.model.errors import BraidError, StorageFull

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_GOES_ON = (
    "nothing was lost: the same command goes on; in Python, a new session and a new query"
)
_DYING_S = 5.0
KEEP = "keep such rows apart: --bad-rows keep, bad_rows='keep'"

_STREAMING = "org.apache.spark.sql.execution.streaming"
_ENDING = threading.Lock()
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_READ = re.compile(r"\[FAILED_READ_FILE[^\]]*\][^\n]*? reading file (\S+)\.\s")
_MALFORMED = re.compile(r"\[MALFORMED_RECORD_IN_PARSING")
_HEADER = re.compile(
    r"(?:CSV header does not conform to the schema|Number of column in CSV header)"
    r"[\s\S]*?CSV file: (\S+)"
)
_VALUE = re.compile(r"\[[A-Z0-9_.]+\] ([^\n]*?) SQLSTATE: 22")  # "data exception"
_ADVICE = re.compile(r"\. (?=Correct the value |Use |If necessary set )")
_TOLERANT = re.compile(r"Use ([`'](try_\w+)[`'] to [^.]*)")
_SQL = re.compile(r"== SQL \(line \d+, position \d+\) ==\n(.+)\n( *)(\^+)")
_PYTHON = re.compile(r"Traceback \(most recent call last\):\n(?:(?:[ \t].*)?\n)*(\S.*)")


def explain_fault(
    fault: Exception, file: str = "an input file", *, keeps_bad: bool = False
) -> BraidError | str:
    """The error to show, if trying again cannot help; else the reason in one line.

    `file` is what was being read, in case Spark does not say. Where bad rows are kept apart
    already, that is no cure.
    """
    text = str(fault)
    header = _HEADER.search(text)
    if header:
        return BraidError(
            f"{_path(header[1])} has other columns than the files before it",
            hint="give it the same header, or move it out of the folder, and start again",
        )
    read = _READ.search(text)
    malformed = _MALFORMED.search(text)
    if read or malformed:
        what = _path(read[1]) if read else file
        why = "a row does not fit the columns" if malformed else "it is damaged, or gone"
        hint = f"{MEND}; or {KEEP}" if malformed and not keeps_bad else MEND
        return BraidError(f"cannot read {what}: {why}", hint=hint)
    value = _VALUE.search(text)
    if value:
        return _of_a_value(value[1], text, keeps_bad=keeps_bad)
    if "No space left on device" in text:
        return StorageFull(
            "no space left for Spark's own files",
            hint="free some space, or set spark.local.dir to a larger disk, and start again",
        )
    return _first_line(text)


def lost_spark(spark: SparkSession) -> BraidError | None:
    """The error to show if Spark is no longer there: it was stopped, or has died."""
    context = spark.sparkContext
    if context._jsc is None:
        return _stopped()
    process = getattr(context._gateway, "proc", None)
    try:
        if process is None or process.poll() is None:
            return _stopped() if context._jsc.sc().isStopped() else None
    except Exception:  # nobody answers
        with suppress(subprocess.TimeoutExpired):
            if process is not None:
                process.wait(_DYING_S)
    code = None if process is None else process.poll()
    return BraidError(f"Spark has died ({_end_of(code)})", hint=_GOES_ON)


def require_spark(spark: SparkSession) -> None:
    """Raise an error if a query that is yet to begin has lost its Spark."""
    lost = lost_spark(spark)
    if lost is not None:
        cure = "start Spark again with braid.session(), and make the query anew"
        raise BraidError(lost.message, hint=cure)


def _stopped() -> BraidError:
    return BraidError("the Spark session was stopped", hint=_GOES_ON)


def _end_of(code: int | None) -> str:
    """How a process ended, in words.

    >>> _end_of(-9)
    'SIGKILL'
    """
    if code is None:
        return "its process does not answer"
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _of_a_value(reason: str, text: str, *, keeps_bad: bool) -> BraidError:
    """A value that an expression cannot take: it would be the same the next time."""
    sql, tolerant = _SQL.search(text), _TOLERANT.search(reason)
    what = sql[1][len(sql[2]) :][: len(sql[3])] if sql else "an expression"
    cure = f"use {tolerant[1]}" if tolerant else "filter out such rows before the query"
    other = f", or {KEEP}"
    if keeps_bad:
        other = ": a stream's DataFrame computes it, before a row can be kept apart"
    return BraidError(
        f"cannot compute {what}: {_ADVICE.split(reason)[0].rstrip('.')}", hint=cure + other
    )


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep PySpark from logging an error of this thread, with its stack trace: we show it."""
    here = threading.get_ident()

    def is_from_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(is_from_elsewhere)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_from_elsewhere)


@contextmanager
def unlogged_end(spark: SparkSession) -> Iterator[None]:
    """Keep Spark from logging how its streaming queries end, with a stack trace: we end one."""
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    set_level = log4j.core.config.Configurator.setLevel
    context = log4j.LogManager.getContext(False)
    with _ENDING:
        own = context.getConfiguration().getLoggers().get(_STREAMING)
        level = None if own is None else own.getExplicitLevel()
        set_level(_STREAMING, log4j.Level.OFF)
        try:
            yield
        finally:
            if own is not None:
                own.setLevel(level)  # without one it follows the others again
            else:
                context.getConfiguration().removeLogger(_STREAMING)
            context.updateLoggers()


def _path(uri: str) -> str:
    return unquote(re.sub(r"^file:/+", "/", uri))


def _first_line(text: str) -> str:
    """The first line that says something: not that a call failed, but why."""
    python = _PYTHON.search(text)
    if python:
        return python[1][:300]
    lines = [line.strip(": ") for line in text.splitlines()]
    telling = [x for x in lines if x and not x.startswith("An error occurred while calling")]
    return telling[0][:300] if telling else "an unknown fault"
