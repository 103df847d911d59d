import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from braid.model.errors import BraidError
from braid.workload import PartitionSpec, StreamSpec, WorkloadSpec, rows, write_files

SECOND = 1_000_000
SPEC = WorkloadSpec((StreamSpec("a", 200),), (PartitionSpec(10),), pad_bytes=5, seed=4)


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


READERS = {
    "parquet": lambda path: pyarrow.parquet.read_table(path),
    "csv": lambda path: pyarrow.csv.read_csv(path),
    "jsonl": lambda path: pa.Table.from_pylist(read_jsonl(path)),
}


@pytest.mark.parametrize("kind", READERS)
def test_files_hold_the_stream_in_order_of_their_names(tmp_path, kind):
    written = write_files(SPEC, "a", tmp_path / "a", seconds=12, file_seconds=5, kind=kind)
    paths = sorted((tmp_path / "a").iterdir())
    assert [path.name for path in paths] == [f"part-0000{n}.{kind}" for n in range(3)]
    table = pa.concat_tables([READERS[kind](path) for path in paths])
    expected = rows(SPEC, "a", 0, 12 * SECOND)
    assert table.select(["k", "v", "pad"]).equals(expected.select(["k", "v", "pad"]))
    assert table["ts"].cast(expected["ts"].type).equals(expected["ts"])
    assert written.rows == expected.num_rows
    assert written.files == 3
    assert written.size_bytes == sum(path.stat().st_size for path in paths)


@pytest.mark.parametrize("kind", READERS)
def test_a_slice_without_rows_is_a_file_too(tmp_path, kind):
    silent = WorkloadSpec((StreamSpec("a", 0),))
    assert write_files(silent, "a", tmp_path, seconds=2, file_seconds=1, kind=kind).files == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_jsonl_says_the_time_in_full(tmp_path):
    write_files(SPEC, "a", tmp_path, seconds=1, kind="jsonl")
    first = read_jsonl(tmp_path / "part-00000.jsonl")[0]
    expected = rows(SPEC, "a", 0, SECOND)["ts"][0].as_py()
    assert first["ts"] == expected.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_a_folder_with_files_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BraidError, match="there are files in it"):
        write_files(SPEC, "a", tmp_path, seconds=1)


def test_a_file_in_the_place_of_the_folder_is_an_error_in_words(tmp_path):
    (tmp_path / "a").write_text("mine")
    with pytest.raises(BraidError, match="cannot write stream 'a'"):
        write_files(SPEC, "a", tmp_path / "a", seconds=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seconds": 0}, "seconds must be from"),
        ({"seconds": 1, "file_seconds": -1}, "file_seconds must be from"),
        ({"seconds": 1e6, "file_seconds": 0.5}, "1e\\+06 seconds, 0.5 to a file"),
        ({"seconds": 1, "kind": "orc"}, "unknown format 'orc'"),
    ],
)
def test_nothing_is_written_for_bad_options(tmp_path, options, said):
    with pytest.raises(BraidError, match=said):
        write_files(SPEC, "a", tmp_path / "a", **options)
    assert not (tmp_path / "a").exists()
