from __future__ import annotations

import shutil
import subprocess
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from braid.engine.folder import files
from braid.engine.sink import LastBatch
from braid.front import sinks
from braid.front.sinks import MemorySink, ParquetSink, check_sink, keep_only
from braid.model.errors import BraidError, DamagedFile, StorageFull
from braid.record.checkpoint import write_sealed
from braid.worker.results import PartWriter
from tests.unit.state.making import flip_bit, rewrite, small_disk

if TYPE_CHECKING:
    from pathlib import Path

    from braid.events import GapFound
    from braid.record.commit import ResultFile

SCHEMA = pa.schema([("v", pa.int64())])


def opened(
    folder: Path, owner: str = "me", batch: int = -1, staged: Path | str = ""
) -> ParquetSink:
    sink = ParquetSink(folder)
    sink.open(folder / "unused", owner, LastBatch(batch, str(staged)))
    return sink


def written(staged: Path, name: str, *values: int, schema: pa.Schema = SCHEMA) -> ResultFile:
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
    sink.publish(0, staged, parts)
    assert published(tmp_path) == {"__batch=0/a.parquet": [1, 2], "__batch=0/b.parquet": [3]}
    assert not list((tmp_path / ".staging").iterdir())


def test_a_result_column_called_batch_is_not_hidden_by_the_folders(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    schema = pa.schema([("batch", pa.int64())])
    sink.check_columns(schema.names)
    staged = sink.stage(7)
    sink.publish(7, staged, [written(staged, "a.parquet", 1, 2, schema=schema)])
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
    sink.publish(1, staged, [written(staged, "a.parquet", 1)])
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
    sink.publish(0, staged, parts)
    sink.publish(0, staged, parts)
    assert published(tmp_path) == {"__batch=0/a.parquet": [1]}


def test_other_results_of_a_batch_that_was_published_are_an_error(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for values in ([1], [1, 2], []):
        staged = sink.stage(0)
        parts = [written(staged, f"{len(values)}.parquet", *values)] if values else []
        if len(values) == 1:
            sink.publish(0, staged, parts)
        else:
            with pytest.raises(BraidError, match="other results") as caught:
                sink.publish(0, staged, parts)
            assert str(tmp_path / "__batch=0") in caught.value.message
    assert published(tmp_path) == {"__batch=0/1.parquet": [1]}


def test_a_published_part_that_has_changed_since_is_an_error(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    staged = sink.stage(0)
    parts = [written(staged, "a.parquet", 1)]
    sink.publish(0, staged, parts)
    flip_bit(tmp_path / "__batch=0" / "a.parquet", 100)
    with pytest.raises(DamagedFile, match="checksum"):
        sink.publish(0, staged, parts)


def test_output_that_is_newer_than_the_checkpoint_is_refused(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for batch in (3, 10):
        staged = sink.stage(batch)
        sink.publish(batch, staged, [written(staged, "a.parquet", 1)])
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
        sink.publish(0, staged, parts)
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
    moved.publish(0, staged, parts)
    assert published(tmp_path / "new") == {"__batch=0/a.parquet": [1]}

    (tmp_path / "third").mkdir()
    shutil.copy(tmp_path / "new" / ".braid.json", tmp_path / "third")
    opened(tmp_path / "third", batch=0, staged=staged)


def test_results_of_another_kind_of_sink_do_not_bind_the_next(tmp_path: Path) -> None:
    memory = MemorySink()
    memory.open(tmp_path / "checkpoint", "me", LastBatch(-1))
    staged = memory.stage(0)
    opened(tmp_path / "out", batch=0, staged=staged)
    staged = opened(tmp_path / "out").stage(1)
    memory.open(tmp_path / "checkpoint", "me", LastBatch(1, str(staged)))


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
            sink.publish(4, staged, parts)
        assert published(tmp_path / "new") == {"__batch=4/a.parquet": [1]}


@pytest.mark.parametrize("name", ["..", "victim", "4-0123abcd"])
def test_a_staged_folder_that_no_output_of_the_checkpoint_has_is_left_alone(
    tmp_path: Path, name: str
) -> None:
    opened(tmp_path / "x", "another checkpoint")
    parquet, memory = opened(tmp_path / "out"), MemorySink()
    memory.open(tmp_path / "checkpoint", "me", LastBatch(-1))
    (tmp_path / "checkpoint" / "results").mkdir(parents=True)
    victim = tmp_path / "x" / ".staging" / name
    places = [victim, tmp_path / "out", tmp_path / "checkpoint"]
    for place in places:
        part = written(place, "a.parquet", 1)
        (place / "precious.txt").touch()
    for sink in (parquet, memory):
        with pytest.raises(DamagedFile):
            sink.publish(4, victim, [part])
    assert all((place / "precious.txt").exists() for place in places)


def test_results_that_another_kind_of_sink_has_staged_are_found(tmp_path: Path) -> None:
    memory, before = MemorySink(), opened(tmp_path / "out")
    memory.open(tmp_path / "out" / "unused", "me", LastBatch(-1))
    for old, new in ((before, memory), (memory, before)):
        staged = old.stage(4)
        new.publish(4, staged, [written(staged, "a.parquet", 1)])
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
    sink.open(tmp_path, "me", LastBatch(-1))
    for batch in (0, 1):
        staged = sink.stage(batch)
        sink.publish(batch, staged, [written(staged, "a.parquet", batch, 5)])
    assert sink.rows() == [{"v": 0}, {"v": 5}, {"v": 1}, {"v": 5}]


def test_a_memory_goes_on_behind_its_own_results_alone(tmp_path: Path) -> None:
    sink = MemorySink()
    sink.open(tmp_path, "me", LastBatch(-1))
    lasts = []
    for batch in (0, 1):
        staged = sink.stage(batch)
        parts = [written(staged, f"{batch}.parquet", batch)]
        sink.publish(batch, staged, parts)
        lasts.append(LastBatch(batch, str(staged), tuple(parts), is_published=True))
    older, last = lasts
    wrong = [
        ("you", last, "of another checkpoint"),
        ("me", older, "has results of batch 1, but .* ends with batch 0: it is an older copy"),
        ("me", replace(last, parts=older.parts), "has other results of batch 1"),
    ]
    for owner, known, finding in wrong:
        with pytest.raises(BraidError, match=finding) as refused:
            sink.open(tmp_path, owner, known)
        assert "braid.sinks.memory()" in str(refused.value.hint)
    sink.open(tmp_path, "me", last)
    sink.open(tmp_path, "me", LastBatch(2))
    assert sink.rows() == [{"v": 0}, {"v": 1}]
    sink.batches.clear()
    sink.open(tmp_path, "you", older)


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


# --- an output that is not what the checkpoint has left


def shown(sink: ParquetSink, batch: int) -> LastBatch:
    """Publish a batch with one part."""
    staged = sink.stage(batch)
    part = written(staged, f"{uuid.uuid4().hex}.parquet", batch)
    sink.publish(batch, staged, [part])
    return LastBatch(batch, str(staged), (part,), is_published=True)


def opened_again(folder: Path, last: LastBatch) -> GapFound | None:
    return ParquetSink(folder).open(folder / "unused", "me", last)


def test_an_output_that_was_removed_is_refused_and_begun_anew_only_on_purpose(
    tmp_path: Path,
) -> None:
    out = tmp_path / "my out"
    last = shown(opened(out), 3)
    assert opened_again(out, last) is None
    out.rename(tmp_path / "moved")
    for folder in (out, tmp_path / "new"):
        with pytest.raises(BraidError, match="is gone") as refused:
            opened_again(folder, last)
        assert str(out) in refused.value.message
        assert not folder.exists()
        command = str(refused.value.hint).partition("without the results so far: ")[2]
        subprocess.run(command, shell=True, check=True)
        gap = opened_again(folder, last)
        assert gap is not None
        assert (gap.batch, gap.newest) == (3, None)
        shutil.rmtree(folder)
    assert opened_again(tmp_path / "moved", last) is None


def test_an_output_that_lacks_the_last_batch_is_told(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    last = [shown(sink, batch) for batch in range(3)][-1]
    for batch, left in ((0, None), (2, 1), (1, None)):
        shutil.rmtree(tmp_path / f"__batch={batch}")
        gap = opened_again(tmp_path, last)
        if batch == 0:
            assert gap is None, "early batches may be moved away"
            continue
        assert gap is not None
        assert (gap.batch, gap.newest, gap.folder) == (2, left, str(tmp_path))
        assert "batch 2 was shown there" in gap.reason


def test_other_results_of_the_last_batch_are_refused_though_it_was_noted_as_shown(
    tmp_path: Path,
) -> None:
    sink = opened(tmp_path)
    last = shown(sink, 0)
    shutil.rmtree(tmp_path / "__batch=0")
    of_another_branch = shown(sink, 0)
    assert opened_again(tmp_path, of_another_branch) is None
    for wrong in (last, replace(last, parts=())):
        with pytest.raises(BraidError, match="other results") as refused:
            opened_again(tmp_path, wrong)
        assert str(tmp_path / "__batch=0") in refused.value.message
        assert "restore both from one copy" in str(refused.value.hint)


def test_a_batch_that_was_shown_elsewhere_or_had_no_rows_is_not_missed(tmp_path: Path) -> None:
    last = shown(opened(tmp_path), 0)
    assert opened_again(tmp_path, replace(last, number=1, parts=())) is None
    memory = MemorySink()
    memory.open(tmp_path / "checkpoint", "me", LastBatch(0))
    assert opened_again(tmp_path, replace(last, number=1, staged=str(memory.stage(1)))) is None


@pytest.mark.parametrize("name", ["__batch", "batch"])
def test_a_marker_that_was_lost_in_a_copy_is_written_again(tmp_path: Path, name: str) -> None:
    sink = opened(tmp_path / "out")
    last = [shown(sink, batch) for batch in range(2)][-1]
    copy = tmp_path / "copy"
    for batch in range(2):
        shutil.copytree(tmp_path / "out" / f"__batch={batch}", copy / f"{name}={batch}")
    assert opened_again(copy, last) is None
    assert opened_again(copy, last) is None
    again = ParquetSink(copy)
    again.open(tmp_path / "checkpoint", "me", last)
    shown(again, 2)
    assert sorted(path.name for path in copy.glob("*=*")) == [f"{name}={n}" for n in range(3)]


@pytest.mark.parametrize("name", ["__batch", "batch"])
def test_a_marker_that_was_lost_is_named_if_the_batches_may_be_of_others(
    tmp_path: Path, name: str
) -> None:
    sink = opened(tmp_path / "out")
    shown(sink, 0)
    last = shown(sink, 1)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "out" / "__batch=0", copy / f"{name}=0")
    with pytest.raises(BraidError, match="already holds batches") as refused:
        opened_again(copy, last)
    assert ".braid.json was lost" in str(refused.value.hint)
    assert not (copy / ".braid.json").exists()
    command = str(refused.value.hint).partition("write it anew: ")[2]
    subprocess.run(command, shell=True, check=True)
    gap = opened_again(copy, last)
    assert gap is not None
    assert gap.newest == 0


def test_a_lost_marker_is_not_written_beside_damaged_results(tmp_path: Path) -> None:
    last = shown(opened(tmp_path), 0)
    (tmp_path / ".braid.json").unlink()
    flip_bit(next(tmp_path.glob("__batch=0/*.parquet")), 100)
    with pytest.raises(DamagedFile):
        opened_again(tmp_path, last)
    assert not (tmp_path / ".braid.json").exists()


def test_a_callback_is_a_function_and_a_folder_a_path() -> None:
    with pytest.raises(BraidError, match="takes a function, not 'x'"):
        sinks.callback("x")  # type: ignore[arg-type]
    with pytest.raises(BraidError, match="None is no path"):
        sinks.parquet(None)  # type: ignore[arg-type]
