from __future__ import annotations

import json
import os
from threading import Timer
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from braid.cli.run import check_folders
from braid.engine.folder import NoFileYet, arrow_schema, files
from braid.engine.is_complete import SETTLED_S
from braid.engine.shelf import Shelf
from braid.model.errors import BraidError
from braid.spark.files import FileColumns

if TYPE_CHECKING:
    from pathlib import Path


def fill(folder: Path, *names: str) -> Path:
    """Empty files, each older than the one before: by age their order is reversed."""
    for age, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1e9 - age, 1e9 - age))
    return folder


def browse(read: dict[str, set[str]] | None = None, **folders: Path) -> Shelf:
    return Shelf.browse({name: files(folder) for name, folder in folders.items()}, read or {})


def read_all(shelf: Shelf) -> list[dict[str, list[str]]]:
    batches = []
    while not shelf.is_empty():
        batches.append(shelf.take())
    return batches


def test_files_are_read_in_the_order_of_their_names_whatever_their_age(tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", "c.csv", "a.csv", "d/1.csv", "b.csv")
    names = [batch["a"] for batch in read_all(browse(a=folder))]
    assert names == [["a.csv"], ["b.csv"], ["c.csv"], ["d/1.csv"]]


def test_files_of_no_known_format_and_hidden_ones_are_not_read(tmp_path: Path) -> None:
    folder = fill(
        tmp_path, "x.csv", "_SUCCESS", ".x.csv.crc", "notes.txt", "_tmp/y.csv", "Z.CSV"
    )
    assert files(folder).names() == ["Z.CSV", "x.csv"]


def test_a_place_whose_files_would_be_listed_is_known(tmp_path: Path) -> None:
    stream = files(fill(tmp_path / "in", "x.csv"))
    (tmp_path / "link").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "away").symlink_to(tmp_path)
    inside = ["in", "in/out", "in/a/b/out", "in/../in/out", "link", "link/out", "in/__batch=0"]
    for name in inside:
        assert stream.would_list(tmp_path / name), name
        assert files(tmp_path / "link").would_list(tmp_path / name), name
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "y.csv").touch()
    assert len(stream.names()) == 5, "as it is when files are there"
    for name in ["out", "input", "in/.out", "in/_tmp/out", "in/away/out", "."]:
        assert not stream.would_list(tmp_path / name), name


def test_a_batch_takes_some_files_of_every_stream_that_has_them(tmp_path: Path) -> None:
    a = fill(tmp_path / "a", "0.csv", "1.csv", "2.csv")
    b = fill(tmp_path / "b", "0.csv")
    shelf = Shelf.browse({"a": files(a, 2), "b": files(b)}, {})
    assert read_all(shelf) == [
        {"a": ["0.csv", "1.csv"], "b": ["0.csv"]},
        {"a": ["2.csv"], "b": []},
    ]


def test_files_that_were_read_are_not_read_again(tmp_path: Path) -> None:
    folder = fill(tmp_path, "0.csv", "1.csv", "2.csv", "3.csv", "4.csv")
    rest = read_all(browse({"a": {"0.csv", "1.csv"}}, a=folder))
    assert [batch["a"] for batch in rest] == [["2.csv"], ["3.csv"], ["4.csv"]]


def test_a_stream_of_which_nothing_was_read_starts_at_its_first_file(tmp_path: Path) -> None:
    a, b = fill(tmp_path / "a", "0.csv"), fill(tmp_path / "b", "0.csv")
    assert read_all(browse({"a": {"0.csv"}}, a=a, b=b)) == [{"a": [], "b": ["0.csv"]}]


def test_a_file_that_came_late_is_read_though_others_behind_it_were_removed(
    tmp_path: Path,
) -> None:
    folder = fill(tmp_path, "2.csv", "3.csv", "4.csv")
    (folder / "3.csv").unlink()
    assert read_all(browse({"a": {"1.csv", "3.csv"}}, a=folder)) == [
        {"a": ["2.csv"]},
        {"a": ["4.csv"]},
    ]


@pytest.mark.parametrize(
    ("names", "told", "cure"),
    [
        ((), "has no Parquet, CSV or JSON-lines file", ".parquet"),
        (("notes.txt",), "has no Parquet, CSV or JSON-lines file", ".parquet"),
        (("a.csv", "b.json"), "mixes csv and json files", "one format"),
    ],
)
def test_a_folder_without_one_format_is_refused(
    tmp_path: Path, names: tuple[str, ...], told: str, cure: str
) -> None:
    with pytest.raises(BraidError, match=told) as caught:
        files(fill(tmp_path, *names)).format()
    assert str(tmp_path) in caught.value.message
    assert cure in str(caught.value.hint)


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(BraidError, match="does not exist") as caught:
        files(tmp_path / "nowhere").names()
    assert str(tmp_path / "nowhere") in caught.value.message


def test_endings_in_any_case_name_their_format(tmp_path: Path) -> None:
    assert files(fill(tmp_path, "a.JSONL", "b.ndjson", "c.json")).format() == "json"


def test_a_batch_needs_a_file(tmp_path: Path) -> None:
    with pytest.raises(BraidError, match="at least 1"):
        files(tmp_path, 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("0.csv", "k,ts,name\n1,2024-01-01 00:00:00.250+00:00,x\n"),
        ("0.json", '{"k": 1, "ts": "2024-01-01 00:00:00.250+00:00", "name": "x"}\n'),
        ("1.json", '{"k": 1, "ts": "2024-01-01T00:00:00Z", "name": "x"}\n'),
        (
            "2.json",
            '{"k": 1, "ts": null, "name": "x"}\n{"k": 1, "ts": "2024-01-01T00:00:00"}\n',
        ),
    ],
)
def test_moments_are_known_for_what_they_are_without_spark(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    types = [pa.int64(), pa.timestamp("us", "UTC"), pa.string()]
    assert arrow_schema(files(tmp_path)) == pa.schema(
        zip(["k", "ts", "name"], types, strict=True)
    )


def test_files_that_come_while_folders_are_followed_are_read_in_order(tmp_path: Path) -> None:
    folder = fill(tmp_path, "b.csv", "c.csv")
    shelf = Shelf.browse({"a": files(folder)}, {"a": {"b.csv"}}, follows=True)
    assert shelf.is_empty(), "it is not known yet whether they are complete"
    assert not shelf.restock(now_s=1e9 + SETTLED_S)
    assert read_all(shelf) == [{"a": ["c.csv"]}]
    fill(tmp_path, "e.csv", "a.csv", "d.csv")
    assert not shelf.restock(now_s=1e9 + SETTLED_S)
    assert read_all(shelf) == [{"a": ["a.csv"]}, {"a": ["d.csv"]}, {"a": ["e.csv"]}]
    assert not shelf.restock(now_s=1e9 + SETTLED_S)
    assert shelf.is_empty()


def test_a_half_written_file_is_waited_for_by_those_behind_it(tmp_path: Path) -> None:
    for name in ("a.parquet", "c.parquet"):
        pq.write_table(pa.table({"k": [1]}), tmp_path / name)
    whole = (tmp_path / "a.parquet").read_bytes()
    shelf = Shelf.browse({"a": files(tmp_path)}, {}, follows=True)
    for half in (b"", whole[:4], whole[:-1], whole[: len(whole) // 2]):
        (tmp_path / "b.parquet").write_bytes(half)
        assert shelf.restock(now_s=1e12) == [("a", "b.parquet")]
    assert read_all(shelf) == [{"a": ["a.parquet"]}]
    (tmp_path / "b.parquet").write_bytes(whole)
    assert not shelf.restock(now_s=0)
    assert read_all(shelf) == [{"a": ["b.parquet"]}, {"a": ["c.parquet"]}]


def test_a_text_file_is_complete_once_it_has_come_to_rest(tmp_path: Path) -> None:
    shelf = Shelf.browse({"a": files(fill(tmp_path, "0.jsonl"))}, {}, follows=True)
    assert shelf.restock(now_s=1e9 + SETTLED_S / 2) == [("a", "0.jsonl")]
    assert shelf.is_empty()
    assert not shelf.restock(now_s=1e9 + SETTLED_S)
    assert not shelf.is_empty()


def test_batches_of_an_output_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    batches = [f"__batch={n}/part-0.parquet" for n in (0, 1, 2, 9, 10, 11, 100)]
    older = [f"late/batch={n}/stream=a/p.parquet" for n in (2, 10)]
    others = ["n=10/x.parquet", "n=2/x.parquet"]
    folder = fill(tmp_path, *batches, *older, *others)
    assert files(folder).names() == [*batches, *older, *others]
    read = set(sorted(batches)[:4])  # by an earlier version, as text
    rest = read_all(browse({"a": read}, a=folder))
    assert [batch["a"][0] for batch in rest] == [
        name for name in [*batches, *older, *others] if name not in read
    ]


def test_a_folder_that_is_followed_is_waited_for_until_a_file_is_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = files(fill(tmp_path, "0.parquet"))
    with pytest.raises(NoFileYet, match=r"0\.parquet: it is not complete"):
        stream.first()
    whole = pa.table({"k": [1]})
    timer = Timer(0.7, pq.write_table, (whole, tmp_path / "1.parquet"))
    timer.start()
    check_folders({"a": stream}, (), follow=True)
    timer.join()
    assert stream.first() == str(tmp_path / "1.parquet")
    assert capsys.readouterr().err == f"waiting for a complete file in {tmp_path}\n"
    empty = tmp_path / "empty"
    empty.mkdir()
    check_folders({"a": files(empty)}, {"a"}, follow=False)
    with pytest.raises(NoFileYet):
        check_folders({"a": files(empty)}, (), follow=False)


def test_columns_are_the_same_once_a_checkpoint_has_had_them() -> None:
    schema = pa.schema([pa.field("k", pa.list_(pa.int32())), ("ts", pa.timestamp("us", "UTC"))])
    for parquet in (None, schema):
        columns = FileColumns("parquet", from_arrow_schema(schema), parquet)
        assert FileColumns.from_json(json.loads(json.dumps(columns.to_json()))) == columns
