"""Spark's errors, as they were when these tests were written, and what we make of them."""

from __future__ import annotations

import logging
import threading

import pytest
from pyspark.logger import PySparkLogger

from braid.model.errors import BraidError, StorageFull
from braid.spark.faults import KEEP, explain_fault, unlogged

FAILED = """An error occurred while calling o57.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading \
file file:///data/v1.2/a%20b/part-0.csv.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(Query.scala:920)
"""
MALFORMED = """\
Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] \
Malformed records are detected in record parsing: [1,1704067200000000,null].
Parse Mode: FAILFAST."""
COUNT = """\
Caused by: org.apache.spark.SparkIllegalArgumentException: Number of column in CSV header is \
not equal to number of fields in the schema:
 Header length: 2, schema size: 3
CSV file: file:///data/v1.2/a%20b/part-0.csv
"""
NAMES = """\
Caused by: org.apache.spark.SparkIllegalArgumentException: CSV header does not conform to the \
schema.
 Header: k, ts, w
 Schema: k, ts, v
Expected: v but found: w
CSV file: file:///data/v1.2/a%20b/part-0.csv
"""
LOST = """An error occurred while calling o99.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: ShuffleMapStage 4 failed
\tat org.apache.spark.scheduler.DAGScheduler
"""
PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/worker.py", line 3, in evaluate
    raise AssertionError("worker 1 was sent rows of a group it has not")

AssertionError: worker 1 was sent rows of a group it has not
\tat org.apache.spark.api.python.BasePythonRunner
"""

CAST = """An error occurred while calling o99.collectToPython.
: org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value '1. B' of the \
type "STRING" cannot be cast to "INT" because it is malformed. Correct the value as per the \
syntax, or change its target type. Use `try_cast` to tolerate malformed input and return NULL \
instead. SQLSTATE: 22018
== SQL (line 1, position 2) ==
(cast(`name` AS INT) + 1) AS `x`
 ^^^^^^^^^^^^^^^^^^^

\tat org.apache.spark.sql.errors.QueryExecutionErrors$.invalidInputInCastToNumberError
"""
NO_SQL = """: org.apache.spark.SparkDateTimeException: [DATETIME_OVERFLOW] Datetime operation \
overflow: add 1 to 9999-12-31. SQLSTATE: 22008"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (FAILED, "cannot read /data/v1.2/a b/part-0.csv: it is damaged, or gone"),
        (FAILED + MALFORMED, "/data/v1.2/a b/part-0.csv: a row does not fit the columns"),
        (MALFORMED, "cannot read an input file: a row does not fit the columns"),
        (FAILED + COUNT, "/data/v1.2/a b/part-0.csv has other columns than the files before"),
        (FAILED + NAMES, "/data/v1.2/a b/part-0.csv has other columns than the files before"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_in_full_with_a_cure(text: str, told: str) -> None:
    error = explain_fault(Exception(text))
    assert isinstance(error, BraidError)
    assert told in error.message
    assert "move it out of the folder" in str(error.hint)


def test_a_file_that_spark_does_not_name_is_named_by_whoever_reads_it() -> None:
    error = explain_fault(Exception(MALFORMED), "/data/first.json")
    assert str(error).startswith("cannot read /data/first.json")


@pytest.mark.parametrize(
    ("text", "told", "cure"),
    [
        (
            CAST,
            "cannot compute cast(`name` AS INT): The value '1. B' of the type "
            '"STRING" cannot be cast to "INT" because it is malformed',
            "use `try_cast` to tolerate malformed input and return NULL instead",
        ),
        (
            NO_SQL,
            "cannot compute an expression: Datetime operation overflow: add 1 to 9999-12-31",
            "filter out such rows before the query",
        ),
    ],
)
def test_a_value_that_an_expression_cannot_take_is_not_tried_again(
    text: str, told: str, cure: str
) -> None:
    error = explain_fault(Exception(text))
    assert isinstance(error, BraidError)
    assert (error.message, error.hint) == (told, f"{cure}, or {KEEP}")


@pytest.mark.parametrize("text", [CAST, NO_SQL, MALFORMED, FAILED + MALFORMED])
def test_what_is_done_already_is_no_cure(text: str) -> None:
    error = explain_fault(Exception(text), keeps_bad=True)
    assert isinstance(error, BraidError)
    assert error.message == explain_fault(Exception(text)).message  # type: ignore[union-attr]
    assert KEEP not in str(error.hint)


def test_errors_that_we_show_are_logged_only_if_they_are_another_threads() -> None:
    seen: list[str] = []
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        with unlogged():
            logger.error("ours")
            other = threading.Thread(target=logger.error, args=["another's"])
            other.start()
            other.join()
        logger.error("later")
    finally:
        logger.removeHandler(handler)
    assert seen == ["another's", "later"]


def test_a_full_disk_of_sparks_own_is_told_from_ours() -> None:
    error = explain_fault(Exception("java.io.IOException: No space left on device"))
    assert isinstance(error, StorageFull)
    assert "spark.local.dir" in str(error.hint)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            LOST,
            "org.apache.spark.SparkException: "
            "Job aborted due to stage failure: ShuffleMapStage 4 failed",
        ),
        (PYTHON, "AssertionError: worker 1 was sent rows of a group it has not"),
        ("", "an unknown fault"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_what_may_pass_is_told_in_the_line_that_says_why(text: str, reason: str) -> None:
    assert explain_fault(Exception(text)) == reason
