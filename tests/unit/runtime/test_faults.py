"""Spark's errors, as they were when these tests were written, and what we make of them."""

from __future__ import annotations

import pytest

from braid.model.errors import BraidError, StorageFull
from braid.runtime.faults import explain_fault

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
