"""Local places that Spark reads or writes, however they are called."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.model.errors import BraidError
from tests.oracle.values import EPOCH, TIME

pytestmark = pytest.mark.spark

PAIRS = (
    "SELECT a.k, a.v AS va, b.v AS vb FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k"
)
NAMES = ["a b", "50%", "a%20b", "x#y", "q?z", "[ab]", "{c,d}", "é*"]


def put(folder, name, value):
    folder.mkdir(parents=True, exist_ok=True)
    columns = {"k": pa.array([1]), "ts": pa.array([EPOCH], TIME), "v": pa.array([value])}
    pq.write_table(pa.table(columns), folder / name)


def frame(spark, path):
    return spark.readStream.schema("k long, ts timestamp, v long").parquet(str(path))


def streams(spark, folder, as_frames):
    if as_frames:
        return {s: frame(spark, f"file://{folder / s}") for s in "ab"}
    return {s: braid.files(folder / s) for s in "ab"}


@pytest.fixture
def far_default(spark):
    """A file system that is not local, and that nobody answers for, is Spark's default."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    before = conf.get("fs.defaultFS")
    conf.set("fs.defaultFS", "hdfs://127.0.0.1:1")
    yield
    conf.set("fs.defaultFS", before)


@pytest.mark.parametrize("as_frames", [False, True], ids=["folders", "frames"])
def test_paths_are_local_whatever_the_default_file_system_is(
    spark, far_default, tmp_path, as_frames
):
    found: Counter[tuple[int, int]] = Counter()

    def take(rows, batch):
        found.update((row.va, row.vb) for row in rows.collect())

    for name in "ab":
        put(tmp_path / name, "0.parquet", 0)
    query = braid.query(PAIRS, streams(spark, tmp_path, as_frames), event_time="ts")
    run = query.start(
        checkpoint=tmp_path / "c",
        sink=braid.sinks.callback(take),
        workers=1,
        available_now=as_frames,
    )
    run.await_termination()
    assert found == Counter([(0, 0)])
    assert (tmp_path / "c" / "spark").is_dir() == as_frames


def test_nothing_in_a_name_is_an_escape_or_a_pattern(spark, tmp_path):
    found = set()

    def take(rows, batch):
        found.update((row.va, row.vb) for row in rows.collect())

    for number, name in enumerate(NAMES):
        place = tmp_path / name
        for stream in "ab":
            put(place / stream, f"{name}.parquet", number)
        files = streams(spark, place, as_frames=False)
        query = braid.query(PAIRS, files, event_time="ts")
        sink = braid.sinks.callback(take)
        query.start(checkpoint=place / "c", sink=sink, workers=1).await_termination()
        assert (number, number) in found, name


@pytest.mark.parametrize("written", ["{}", "file://{}", "file:{}", "{}/../[a]", "{}/../?"])
def test_output_where_a_streaming_frame_reads_is_refused(spark, tmp_path, written):
    for name in "ab":
        put(tmp_path / name, "0.parquet", 0)
    frames = {
        "a": frame(spark, written.format(tmp_path / "a")),
        "b": frame(spark, tmp_path / "b"),
    }
    frames["a"] = frames["a"].where("v >= 0")
    query = braid.query(PAIRS, frames, event_time="ts")

    def refused(**places):
        given = {"checkpoint": tmp_path / "ck", "sink": braid.sinks.parquet(tmp_path / "out")}
        with pytest.raises(BraidError, match="stream 'a'") as caught:
            query.start(**given | places, workers=1, available_now=True)
        assert caught.value.hint is not None
        return caught.value.message

    for place in (tmp_path / "a", tmp_path / "a" / "results"):
        assert "the output" in refused(sink=braid.sinks.parquet(place))
        assert "the checkpoint" in refused(checkpoint=place)
        assert "the folder for late rows" in refused(late=place)
    assert "files there may be removed" in refused(checkpoint=tmp_path) or "[" in written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    hidden = braid.sinks.parquet(tmp_path / "a" / "_out")
    run = query.start(checkpoint=tmp_path / "ck", sink=hidden, workers=1, available_now=True)
    run.await_termination()
    assert run.progress.output_rows == (2 if "?" in written else 1)
