"""Queries of every form, under random plans, through Spark: what DuckDB gives, as multisets.

The kernel's own random cases, which are many more, are in `tests/oracle`. Here the same cases
go through Catalyst, the shuffles between rounds and the files of a real run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import braid
from braid.front.query import ContinuousQuery, column_types
from braid.plan.tree import all_trees, default_tree, show_tree
from braid.spark.sources import SparkSources
from tests.oracle.queries import EVENT_TIME, Case, cases
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CASES = settings(
    deadline=None,
    max_examples=10,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # to shrink a case takes minutes here, and the kernel has its own
    derandomize=True,
)

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("style", ["plain", "history", "grouped"])
@CASES
@given(data=st.data())
def test_any_query_under_any_plan_equals_duckdb_through_spark(
    spark: SparkSession, style: str, data: st.DataObject
) -> None:
    case = data.draw(cases(styles=[style], most_batches=3))
    trees = list(all_trees(range(len(case.query.streams))))
    tree = default_tree(case.query) if style == "history" else data.draw(st.sampled_from(trees))
    aliases = [ref.alias for ref in case.query.streams]
    with quick_folder() as folder:
        results = run(spark, case, show_tree(tree, aliases), folder)
    assert case.counted(results) == case.expected()


def run(spark: SparkSession, case: Case, plan: str, folder: Path) -> pa.Table:
    """All of a case's batches as files, in two runs with other numbers of workers."""
    sink = braid.sinks.memory()
    batches = len(case.restarts)
    half = max(1, batches // 2)
    stages = [(range(half), case.workers), (range(half, batches), 2)]
    if case.query.grouping or any(stream.history for stream in case.query.streams):
        # The end of a run closes moments for which the next one may still have rows.
        stages = [(range(batches), case.workers)]
    for numbers, workers in stages:
        for source in case.tables:
            (folder / source).mkdir(exist_ok=True)
            for number in numbers:
                rows = case.slice(source, number)
                pq.write_table(rows, folder / source / f"{number}.parquet")
        running = bound(spark, case, folder).start(
            checkpoint=folder / "checkpoint",
            sink=sink,
            workers=workers,
            groups=case.groups,
            plan=plan,
        )
        running.await_termination()
        assert running.progress.late_rows == 0
    return sink.table()


def bound(spark: SparkSession, case: Case, folder: Path) -> ContinuousQuery:
    """The query as `braid.query` would bind it, had it come as text."""
    streams = {source: braid.files(folder / source) for source in case.tables}
    sources = SparkSources.open(streams, spark.newSession(), EVENT_TIME)
    types = column_types(case.query, sources.schemas, sources.typing)
    return ContinuousQuery(case.query, types, EVENT_TIME, case.lateness_us, None, sources)
