from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from braid.join.results import PartWriter
from braid.model.errors import BraidError, DamagedFile, StorageFull
from braid.runtime import sinks
from braid.runtime.files import files
from braid.runtime.sinks import MemorySink, ParquetSink, check_sink, keep_only
from braid.state.checkpoint import write_sealed
from tests.unit.state.making import flip_bit, rewrite, small_disk

if TYPE_CHECKING:
    from pathlib import Path

    from braid.state.commit import Part

NO_SPARK = cast("Any", None)
SCHEMA = pa.schema([("v", pa.int64())])


def opened(
    folder: Path, owner: str = "me", batch: int = -1, staged: Path | str = ""
) -> ParquetSink:
    sink = ParquetSink(folder)
    sink.open(folder / "unused", owner, batch, str(staged))
    return sink


def written(staged: Path, name: str, *values: int, schema: pa.Schema = SCHEMA) -> Part:
    writer = PartWriter(staged, name, schema)
    writer.write(pa.table([values], schema=schema))
    part = writer.finish()
    assert part is not None
    return part


def published(folder: Path) -> dict[str, list[int]]:
    return {
        str(path.relative_to(folder)): pq.read_table(path)["v"].to_pylist()
        for path in sorted(folder.glob("__batch=*/*.parquet"))
    }


def test_a_published_batch_is_what_its_commit_names_and_nothing_else(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    staged = sink.stage(0)
    parts = [written(staged, "a.parquet", 1, 2), written(staged, "b.parquet", 3)]
    written(staged, "of a task that was tried twice.parquet", 99)
    sink.publish(NO_SPARK, 0, staged, parts)
    assert published(tmp_path) == {"__batch=0/a.parquet": [1, 2], "__batch=0/b.parquet": [3]}
    assert not list((tmp_path / ".staging").iterdir())


def test_a_result_column_called_batch_is_not_hidden_by_the_folders(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    schema = pa.schema([("batch", pa.int64())])
    sink.check_columns(schema.names)
    staged = sink.stage(7)
    sink.publish(NO_SPARK, 7, staged, [written(staged, "a.parquet", 1, 2, schema=schema)])
    with duckdb.connect() as db:
        rows = db.execute(f"SELECT batch, __batch FROM '{tmp_path}/*/*.parquet'").fetchall()
    assert rows == [(1, 7), (2, 7)]
    assert pq.read_table(tmp_path, ignore_prefixes=["."])["batch"].to_pylist() == [1, 2]
    assert files(tmp_path).names() == ["__batch=7/a.parquet"], "another query can read it"


@pytest.mark.parametrize("column", ["__batch", "__Batch", "stream"])
def test_a_column_that_the_folders_would_hide_is_refused_before_anything_is_made(
    tmp_path: Path, column: str
) -> None:
    with pytest.raises(BraidError, match=column) as caught:
        ParquetSink(tmp_path / "out").check_columns(["v", column], "stream")
    assert "another name" in str(caught.value.hint)
    assert not (tmp_path / "out").exists()


def test_an_output_that_was_begun_with_other_folders_goes_on_with_them(tmp_path: Path) -> None:
    (tmp_path / "batch=0").mkdir()
    write_sealed(tmp_path / ".braid.json", {"checkpoint": "me"})
    sink = opened(tmp_path, batch=0)
    sink.check_columns(["__batch"])
    staged = sink.stage(1)
    sink.publish(NO_SPARK, 1, staged, [written(staged, "a.parquet", 1)])
    assert (tmp_path / "batch=1" / "a.parquet").exists()
    with pytest.raises(BraidError, match="results of batch 1") as caught:
        opened(tmp_path, batch=0)
    assert "after batch=0 away" in str(caught.value.hint)


def test_a_marker_that_names_strange_folders_is_damage(tmp_path: Path) -> None:
    write_sealed(tmp_path / ".braid.json", {"checkpoint": "me", "folders": "../x"})
    with pytest.raises(DamagedFile, match=r"\.\./x"):
        opened(tmp_path)


def test_publishing_twice_changes_nothing(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    staged = sink.stage(0)
    parts = [written(staged, "a.parquet", 1)]
    sink.publish(NO_SPARK, 0, staged, parts)
    sink.publish(NO_SPARK, 0, staged, parts)
    assert published(tmp_path) == {"__batch=0/a.parquet": [1]}


def test_other_results_of_a_batch_that_was_published_are_an_error(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for values in ([1], [1, 2], []):
        staged = sink.stage(0)
        parts = [written(staged, f"{len(values)}.parquet", *values)] if values else []
        if len(values) == 1:
            sink.publish(NO_SPARK, 0, staged, parts)
        else:
            with pytest.raises(BraidError, match="other results") as caught:
                sink.publish(NO_SPARK, 0, staged, parts)
            assert str(tmp_path / "__batch=0") in caught.value.message
    assert published(tmp_path) == {"__batch=0/1.parquet": [1]}


def test_a_published_part_that_has_changed_since_is_an_error(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    staged = sink.stage(0)
    parts = [written(staged, "a.parquet", 1)]
    sink.publish(NO_SPARK, 0, staged, parts)
    flip_bit(tmp_path / "__batch=0" / "a.parquet", 100)
    with pytest.raises(DamagedFile, match="checksum"):
        sink.publish(NO_SPARK, 0, staged, parts)


def test_output_that_is_newer_than_the_checkpoint_is_refused(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for batch in (3, 10):
        staged = sink.stage(batch)
        sink.publish(NO_SPARK, batch, staged, [written(staged, "a.parquet", 1)])
    opened(tmp_path, batch=10)
    with pytest.raises(BraidError, match=r"batch 10, but .* ends with batch 9") as caught:
        opened(tmp_path, batch=9)
    assert "__batch=9" in str(caught.value.hint)


def test_what_failed_attempts_staged_is_cleared_before_the_next(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    written(sink.stage(0), "a.parquet", 1)
    assert not sink.stage(0).exists()
    assert not list((tmp_path / ".staging").iterdir())


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "remove"])
def test_a_damaged_part_is_found_before_anything_is_shown_or_removed(
    tmp_path: Path, damage: str
) -> None:
    sink = opened(tmp_path)
    staged = sink.stage(0)
    parts = [written(staged, "a.parquet", 1, 2), written(staged, "b.parquet", 3)]
    written(staged, "stray.parquet", 99)
    path = staged / "b.parquet"
    if damage == "flip":
        flip_bit(path, 100)
    elif damage == "remove":
        path.unlink()
    else:
        rewrite(path, b"" if damage == "empty" else path.read_bytes()[:-1])
    with pytest.raises(DamagedFile) as caught:
        sink.publish(NO_SPARK, 0, staged, parts)
    assert str(path) in caught.value.message
    assert "restore it from a copy" in str(caught.value.hint)
    assert not published(tmp_path)
    assert (staged / "stray.parquet").exists()


def test_the_results_of_another_checkpoint_are_left_alone(tmp_path: Path) -> None:
    opened(tmp_path, "me")
    opened(tmp_path, "me")
    with pytest.raises(BraidError, match="results of another checkpoint") as caught:
        opened(tmp_path, "you")
    assert str(tmp_path) in caught.value.message
    assert "new folder" in str(caught.value.hint)


def test_a_new_folder_is_refused_while_the_results_so_far_are_in_another(
    tmp_path: Path,
) -> None:
    before = opened(tmp_path / "old")
    staged = before.stage(0)
    parts = [written(staged, "a.parquet", 1)]
    opened(tmp_path / "old", batch=0, staged=staged)
    with pytest.raises(BraidError, match="has its output in") as caught:
        opened(tmp_path / "new", batch=0, staged=staged)
    for name in ("old", "new"):
        assert str(tmp_path / name) in caught.value.message
    assert not (tmp_path / "new").exists()

    (tmp_path / "old").rename(tmp_path / "new")
    moved = opened(tmp_path / "new", batch=0, staged=staged)
    moved.publish(NO_SPARK, 0, staged, parts)
    assert published(tmp_path / "new") == {"__batch=0/a.parquet": [1]}

    (tmp_path / "third").mkdir()
    shutil.copy(tmp_path / "new" / ".braid.json", tmp_path / "third")
    opened(tmp_path / "third", batch=0, staged=staged)


def test_results_of_another_kind_of_sink_do_not_bind_the_next(tmp_path: Path) -> None:
    memory = MemorySink()
    memory.open(tmp_path / "checkpoint", "me", -1, "")
    staged = memory.stage(0)
    opened(tmp_path / "out", batch=0, staged=staged)
    memory.open(tmp_path / "checkpoint", "me", 1, str(opened(tmp_path / "out").stage(1)))


@pytest.mark.parametrize("name", ["__batch=0", "batch=0"])
def test_batches_of_a_run_that_nobody_knows_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(BraidError, match="already holds batches") as caught:
        opened(tmp_path)
    assert "new folder" in str(caught.value.hint)
    assert not (tmp_path / ".braid.json").exists()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BraidError, match="is a file") as caught:
        opened(tmp_path / "file")
    assert "folder" in str(caught.value.hint)


def test_any_bit_that_flips_in_the_marker_is_found(tmp_path: Path) -> None:
    opened(tmp_path)
    marker = tmp_path / ".braid.json"
    for at in range(marker.stat().st_size):
        flip_bit(marker, at)
        with pytest.raises(DamagedFile) as caught:
            opened(tmp_path)
        flip_bit(marker, at)
    assert str(marker) in caught.value.message
    assert "new folder for the results" in str(caught.value.hint)


def test_results_staged_on_another_disk_by_an_earlier_run_are_brought_over(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "old", "1m"):
        before = opened(tmp_path / "old")
        staged = before.stage(4)
        parts = [written(staged, "a.parquet", 1)]
        (tmp_path / "new").mkdir()
        shutil.copy(tmp_path / "old" / ".braid.json", tmp_path / "new")
        sink = opened(tmp_path / "new", batch=4, staged=staged)
        for _ in range(2):
            sink.publish(NO_SPARK, 4, staged, parts)
        assert published(tmp_path / "new") == {"__batch=4/a.parquet": [1]}


@pytest.mark.parametrize("name", ["..", "victim", "4-0123abcd"])
def test_a_staged_folder_that_no_output_of_the_checkpoint_has_is_left_alone(
    tmp_path: Path, name: str
) -> None:
    opened(tmp_path / "x", "another checkpoint")
    parquet, memory = opened(tmp_path / "out"), MemorySink()
    memory.open(tmp_path / "checkpoint", "me", -1, "")
    (tmp_path / "checkpoint" / "results").mkdir(parents=True)
    victim = tmp_path / "x" / ".staging" / name
    places = [victim, tmp_path / "out", tmp_path / "checkpoint"]
    for place in places:
        part = written(place, "a.parquet", 1)
        (place / "precious.txt").touch()
    for sink in (parquet, memory):
        with pytest.raises(DamagedFile):
            sink.publish(NO_SPARK, 4, victim, [part])
    assert all((place / "precious.txt").exists() for place in places)


def test_results_that_another_kind_of_sink_has_staged_are_found(tmp_path: Path) -> None:
    memory, before = MemorySink(), opened(tmp_path / "out")
    memory.open(tmp_path / "out" / "unused", "me", -1, "")
    for old, new in ((before, memory), (memory, before)):
        staged = old.stage(4)
        new.publish(NO_SPARK, 4, staged, [written(staged, "a.parquet", 1)])
    assert memory.rows() == [{"v": 1}]
    assert published(tmp_path / "out") == {"__batch=4/a.parquet": [1]}


def test_a_disk_too_full_for_results_is_an_error_that_names_it(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k"):
        sink = opened(tmp_path / "disk" / "out")
        with pytest.raises(StorageFull) as caught:
            written(sink.stage(0), "a.parquet", *range(50_000))
        assert str(tmp_path / "disk") in caught.value.message
        assert "free some space" in str(caught.value.hint)


def test_results_in_memory_are_those_of_all_batches_in_order(tmp_path: Path) -> None:
    sink = MemorySink()
    sink.open(tmp_path, "me", -1, "")
    for batch in (0, 1):
        staged = sink.stage(batch)
        sink.publish(NO_SPARK, batch, staged, [written(staged, "a.parquet", batch, 5)])
    assert sink.rows() == [{"v": 0}, {"v": 5}, {"v": 1}, {"v": 5}]


def test_parts_in_folders_of_their_own_are_kept(tmp_path: Path) -> None:
    part = written(tmp_path, "stream=a/x.parquet", 1)
    keep_only(tmp_path, [part])
    assert (tmp_path / "stream=a" / "x.parquet").exists()


@pytest.mark.parametrize(
    ("sink", "cure"),
    [
        ("out", "write braid.sinks.parquet('out')"),
        (sinks.memory, "call it: braid.sinks.memory()"),
        (sinks.parquet, "call it: braid.sinks.parquet('out')"),
        (lambda rows, batch: None, "braid.sinks.callback(function)"),
        (MemorySink, "braid.sinks.memory()"),
        (None, "braid.sinks.parquet('out')"),
    ],
)
def test_what_is_no_sink_is_refused_with_the_way_to_make_one(sink: object, cure: str) -> None:
    with pytest.raises(BraidError, match="the sink") as refused:
        check_sink(sink)
    assert cure in (refused.value.hint or "")


def test_sinks_are_sinks() -> None:
    for sink in (sinks.memory(), sinks.parquet("out"), sinks.callback(print)):
        check_sink(sink)


def test_a_callback_is_a_function_and_a_folder_a_path() -> None:
    with pytest.raises(BraidError, match="takes a function, not 'x'"):
        sinks.callback("x")  # type: ignore[arg-type]
    with pytest.raises(BraidError, match="None is no path"):
        sinks.parquet(None)  # type: ignore[arg-type]
