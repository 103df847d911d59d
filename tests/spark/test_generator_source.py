import json
import time

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

from braid.model.errors import BraidError
from braid.spark.generator_source import generator_reader, nexmark_reader, register
from braid.spark.slice_reader import MOST_TASKS
from braid.workload import StreamSpec, WorkloadSpec, dump_spec, nexmark, rows

SECOND = 1_000_000
SPEC = WorkloadSpec(
    (StreamSpec("a", 2000), StreamSpec("b", 500)), disorder_seconds=0.5, pad_bytes=4, seed=3
)


def reader(**options):
    return generator_reader({"spec": dump_spec(SPEC), "stream": "a", **options})


@pytest.fixture(scope="module")
def spark(spark):
    register(spark)
    return spark


def stream(spark, **options):
    source = spark.readStream.format("braid_generator").option("spec", dump_spec(SPEC))
    return source.options(**{"stream": "a", **options}).load()


def drain(frame, folder, out, trigger):
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**trigger)
        .start(str(out))
    )
    try:
        return query, query.awaitTermination(120)
    finally:
        query.stop()


def progress(query):
    return [json.loads(p.json) for p in query.recentProgress if p.numInputRows]


def in_any_order(table):
    return table.select(["ts", "k", "v", "pad"]).sort_by(
        [("ts", "ascending"), ("v", "ascending")]
    )


def found(spark, out):
    return in_any_order(
        spark.read.parquet(str(out)).toArrow().cast(rows(SPEC, "a", 0, 0).schema)
    )


@pytest.mark.spark
def test_all_available_rows_come_in_batches_of_so_many_slices(spark, tmp_path):
    frame = stream(spark, seconds=7.5, sliceSeconds=1, maxSlicesPerTrigger=3)
    out = tmp_path / "out"
    query, ended = drain(frame, tmp_path, out, {"availableNow": True})
    assert ended
    ends = [batch["sources"][0]["endOffset"] for batch in progress(query)]
    assert ends == [{"us": 3 * SECOND}, {"us": 6 * SECOND}, {"us": 7_500_000}]
    assert found(spark, out).equals(in_any_order(rows(SPEC, "a", 0, 7_500_000)))


@pytest.mark.spark
def test_a_restarted_query_goes_on_where_it_was(spark, tmp_path):
    out = tmp_path / "out"
    for seconds in (2, 5):
        drain(stream(spark, seconds=seconds), tmp_path, out, {"availableNow": True})
    assert found(spark, out).equals(in_any_order(rows(SPEC, "a", 0, 5 * SECOND)))


@pytest.mark.spark
def test_a_stream_with_a_speed_takes_its_time(spark, tmp_path):
    out = tmp_path / "out"
    query = (
        stream(spark, speed=10)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(out))
    )
    opened_at = time.monotonic()
    try:
        while len(progress(query)) < 3 and time.monotonic() < opened_at + 60:
            assert query.exception() is None
            time.sleep(0.1)
    finally:
        query.stop()
    passed_seconds = time.monotonic() - opened_at
    last_us = written_until_us(tmp_path / "checkpoint", out)
    assert 0 < last_us <= 10 * SECOND * passed_seconds
    assert found(spark, out).equals(in_any_order(rows(SPEC, "a", 0, last_us)))


def written_until_us(checkpoint, out):
    """The stream's offset that the sink's last commit reached; progress may lag behind it."""
    batches = [int(path.name) for path in (out / "_spark_metadata").glob("[0-9]*")]
    offsets = (checkpoint / "offsets" / str(max(batches))).read_text().splitlines()
    return json.loads(offsets[-1])["us"]


@pytest.mark.spark
def test_a_bad_option_is_named_when_the_stream_is_loaded(spark):
    with pytest.raises(AnalysisException, match="unknown stream 'z'"):
        stream(spark, stream="z", seconds=1)


@pytest.mark.spark
@pytest.mark.parametrize("name", nexmark.STREAMS)
def test_nexmark_comes_with_its_columns(spark, tmp_path, name):
    spec = nexmark.NexmarkSpec(rate=1000, seed=3)
    source = spark.readStream.format("braid_nexmark").option("spec", dump_spec(spec))
    frame = source.option("stream", name).option("seconds", 5).load()
    out = tmp_path / "out"
    _, ended = drain(frame, tmp_path, out, {"availableNow": True})
    assert ended
    expected = nexmark.rows(spec, name, 0, 5 * SECOND)
    found = spark.read.parquet(str(out)).toArrow().cast(expected.schema)
    assert found.sort_by("ts").equals(expected)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seconds": "1", "tempo": "2"}, "unknown option tempo"),
        ({"seconds": "soon"}, "option seconds must be a number, not 'soon'"),
        ({"seconds": "-1"}, "option seconds must be from"),
        ({"speed": "0"}, "option speed must be from"),
        ({"speed": "1", "sliceSeconds": "0"}, "option sliceSeconds must be from"),
        ({"speed": "1", "maxSlicesPerTrigger": "0"}, "option maxSlicesPerTrigger must be"),
        ({"speed": "1", "maxSlicesPerTrigger": "1.5"}, "option maxSlicesPerTrigger must be"),
        ({}, "option seconds is missing"),
        ({"seconds": "1", "spec": "{}"}, "streams is missing"),
    ],
)
def test_options_are_checked(options, said):
    with pytest.raises(BraidError) as caught:
        reader(**options)
    assert caught.value.message.startswith(said)


@pytest.mark.parametrize("name", ["spec", "stream"])
def test_options_are_demanded(name):
    options = {"spec": dump_spec(SPEC), "stream": "a", "seconds": "1"}
    del options[name]
    with pytest.raises(BraidError, match=f"option {name} is missing"):
        generator_reader(options)


def test_nexmark_needs_no_spec():
    source = nexmark_reader({"stream": "bid", "seconds": "10"})
    (part,) = source.partitions({"us": 0}, {"us": SECOND})
    expected = nexmark.rows(nexmark.NexmarkSpec(), "bid", 0, SECOND)
    assert pa.Table.from_batches(source.read(part)).equals(expected)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stream": "item"}, "unknown stream 'item'"),
        ({}, "option stream is missing"),
        ({"stream": "bid", "spec": '{"rate": 0.5}'}, "rate must be a whole number"),
        ({"stream": "bid", "spec": '{"pace": 5}'}, "unknown field pace"),
        ({"stream": "bid", "rate": "5"}, "unknown option rate"),
    ],
)
def test_options_of_nexmark_are_checked(options, said):
    with pytest.raises(BraidError) as caught:
        nexmark_reader({"seconds": "1", **options})
    assert caught.value.message.startswith(said)


def test_a_read_limit_counts_slices():
    source = reader(seconds="10", sliceSeconds="2", maxSlicesPerTrigger="2")
    assert source.getDefaultReadLimit() == ReadMaxFiles(2)
    assert source.latestOffset({"us": 0}, ReadMaxFiles(2)) == {"us": 4 * SECOND}
    assert source.latestOffset({"us": 9 * SECOND}, ReadMaxFiles(2)) == {"us": 10 * SECOND}
    assert source.latestOffset({"us": 0}, ReadAllAvailable()) == {"us": 10 * SECOND}


def test_offsets_never_go_back():
    assert reader(seconds="1").latestOffset({"us": 5}, ReadAllAvailable()) == {"us": SECOND}
    later = {"us": 2 * SECOND}
    assert reader(seconds="1").latestOffset(later, ReadAllAvailable()) == later


def test_slices_of_a_batch_are_its_rows():
    source = reader(seconds="10")
    start, end = {"us": 250_000}, {"us": 3_100_000}
    parts = source.partitions(start, end)
    assert len(parts) == 3
    batches = [batch for part in parts for batch in source.read(part)]
    assert pa.Table.from_batches(batches).equals(rows(SPEC, "a", 250_000, 3_100_000))


def test_an_empty_batch_has_no_slices():
    assert reader(seconds="10").partitions({"us": 5}, {"us": 5}) == []


def test_a_long_batch_has_no_more_than_so_many_tasks():
    parts = reader(seconds="100000").partitions({"us": 0}, {"us": 100_000 * SECOND})
    assert len(parts) <= MOST_TASKS
    assert parts[-1].upper_us == 100_000 * SECOND


def test_a_stream_without_an_end_is_never_all_available():
    with pytest.raises(BraidError, match="never all available"):
        reader(speed="1").prepareForTriggerAvailableNow()


def test_a_stream_with_an_end_is_all_available_whatever_its_speed():
    source = reader(speed="1", seconds="60")
    source.prepareForTriggerAvailableNow()
    assert source.latestOffset({"us": 0}, ReadAllAvailable()) == {"us": 60 * SECOND}
