"""What Spark's pages call a run and its jobs."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model.errors import BraidError
from tests.spark.folders import stream_of

pytestmark = pytest.mark.spark

QUERY = "SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"


@pytest.fixture
def query(tmp_path, spark):
    rows = pa.table({"k": [1, 2], "ts": pa.array([0, 1], pa.timestamp("us", "UTC"))})
    for name in "ab":
        (tmp_path / name).mkdir()
        pq.write_table(rows, tmp_path / name / "0.parquet")

    def make(*, frames):
        kind = (spark, "k bigint, ts timestamp") if frames else (None, None)
        streams = {name: stream_of(tmp_path / name, *kind) for name in "ab"}
        return braid.query(QUERY, event_time="ts", **streams)

    return make


def descriptions(spark):
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = (jobs.apply(number).description() for number in range(jobs.size()))
    return {each.get() for each in found if each.isDefined()}


def start(query, folder, **options):
    return query.start(checkpoint=folder, sink=braid.sinks.memory(), **options)


def test_jobs_are_described_by_the_runs_name_and_the_batch(spark, query, tmp_path):
    start(query(frames=False), tmp_path / "c", name="pairs").await_termination()
    assert {"pairs: place the workers", "pairs: batch 0"} <= descriptions(spark)
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


def test_a_streaming_query_has_a_name_of_its_own_and_may_not_have_anothers(
    spark, query, tmp_path
):
    first = start(query(frames=True), tmp_path / "first")
    second = start(query(frames=True), tmp_path / "second", name="pairs")
    try:
        names = {each.name for each in spark.streams.active}
        assert any(name.startswith("braid a, b (") for name in names)
        assert "pairs" in names
        with pytest.raises(BraidError, match="called 'pairs' runs in this session already"):
            start(query(frames=True), tmp_path / "third", name="pairs")
    finally:
        first.stop()
        second.stop()


def test_a_memory_sink_knows_its_columns_before_there_are_results(spark, query, tmp_path):
    sink = braid.sinks.memory()
    run = query(frames=False).start(checkpoint=tmp_path / "c", sink=sink)
    assert sink.table().schema.names == ["k"]
    run.await_termination()
    assert sink.table().schema == sink.schema
    assert sink.table().num_rows == 2
