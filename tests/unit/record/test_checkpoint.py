from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from braid.model.errors import BraidError, CheckpointError, DamagedFile, StorageFull
from braid.record.checkpoint import Checkpoint, Identity, is_owned, read_sealed, write_sealed
from braid.record.commit import Commit, first_commit
from tests.unit.state.making import flip_bit, rewrite, small_disk

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = Identity("SELECT 1", "a: v int64", 16)
FIRST = first_commit(2, 1, 2, 1, 16, 2)


def opened(folder: Path, identity: Identity = IDENTITY) -> Checkpoint:
    return Checkpoint.open(folder, identity, FIRST)


def made(folder: Path, commit: Commit = FIRST) -> Path:
    """A checkpoint that nobody holds."""
    checkpoint = opened(folder)
    if commit is not FIRST:
        checkpoint.write(commit)
    checkpoint.close()
    return folder


def test_a_new_folder_becomes_a_checkpoint_that_starts_at_the_beginning(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path / "deep" / "new")
    assert checkpoint.last_commit() == FIRST
    checkpoint.close()


def test_a_checkpoint_keeps_its_id_and_its_newest_commit(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    for batch in (8, 9, 10, 11):
        checkpoint.write(replace(FIRST, batch=batch))
    checkpoint.close()
    again = opened(tmp_path)
    assert again.id == checkpoint.id
    assert again.last_commit().batch == 11
    again.close()


def test_sweeping_leaves_what_the_newest_commit_names(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    newest = replace(FIRST, batch=3)
    checkpoint.write(newest)
    (checkpoint.log / "x.log").touch()
    (tmp_path / "commits" / "4.json.77.pending").touch()
    checkpoint.sweep(newest)
    assert checkpoint.last_commit() == newest
    assert [p.name for p in (tmp_path / "commits").iterdir()] == ["3.json"]
    assert not list(checkpoint.log.iterdir())
    checkpoint.close()


def test_a_checkpoint_has_one_user_at_a_time(tmp_path: Path) -> None:
    first = opened(tmp_path)
    assert is_owned(tmp_path)
    with pytest.raises(CheckpointError, match="in use by a running process") as caught:
        opened(tmp_path)
    assert str(tmp_path) in caught.value.message
    assert "stop that run" in str(caught.value.hint)
    first.close()
    assert not is_owned(tmp_path)
    opened(tmp_path).close()


def test_sparks_part_must_have_the_last_batch_that_was_committed(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    checkpoint.check_offsets(FIRST)
    offsets = tmp_path / "spark" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "7").write_text("files 1 to 3")
    kept = checkpoint.offsets_checksum(7)
    assert kept is not None
    older, commit = (replace(FIRST, source_batch=7, source_checksum=c) for c in ("", kept))
    checkpoint.check_offsets(commit)
    checkpoint.check_offsets(older)
    (offsets / "7").write_text("files 2 to 4")
    checkpoint.check_offsets(older)
    with pytest.raises(CheckpointError, match="another batch 7"):
        checkpoint.check_offsets(commit)
    (offsets / "7").rename(offsets / "6")
    for each in (older, commit):
        with pytest.raises(CheckpointError, match="does not have batch 7") as caught:
            checkpoint.check_offsets(each)
        assert str(tmp_path / "spark") in caught.value.message
    checkpoint.close()


def test_a_note_of_results_that_were_shown_is_of_the_same_copy(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    for batch in (0, 1):
        checkpoint.write(replace(FIRST, batch=batch))
        assert not checkpoint.is_published(batch)
        checkpoint.note_published(batch)
        assert checkpoint.is_published(batch)
    (tmp_path / "commits" / "1.json").unlink()
    checkpoint.close()
    again = opened(tmp_path)
    with pytest.raises(CheckpointError, match="batch 1 were shown") as refused:
        again.is_published(again.last_commit().batch)
    assert "ends with batch 0" in refused.value.message
    assert "whole checkpoint folder from one copy" in str(refused.value.hint)
    again.close()


@pytest.mark.parametrize("replaced", [True, False])
def test_a_run_whose_lock_was_removed_commits_nothing_more(
    tmp_path: Path, replaced: bool
) -> None:
    first = opened(tmp_path)
    (tmp_path / "lock").unlink()
    second = opened(tmp_path) if replaced else None
    with pytest.raises(CheckpointError, match="lock of the checkpoint") as caught:
        first.write(replace(FIRST, batch=3))
    assert "nothing was lost" in str(caught.value.hint)
    assert first.last_commit() == FIRST
    if second is not None:
        second.write(replace(FIRST, batch=4))
        second.close()
    first.close()


def test_a_closed_checkpoint_takes_no_commit(tmp_path: Path) -> None:
    closed = opened(tmp_path)
    closed.close()
    with pytest.raises(CheckpointError):
        closed.write(replace(FIRST, batch=3))


def test_a_checkpoint_is_free_once_the_process_that_held_it_is_gone(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from tests.unit.record.test_checkpoint import opened;"
        "held = opened(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "c")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_owned(tmp_path / "c")
        holder.kill()
    assert not is_owned(tmp_path / "c")
    opened(tmp_path / "c").close()


def test_a_folder_that_is_gone_is_owned_by_nobody(tmp_path: Path) -> None:
    assert not is_owned(tmp_path / "gone")


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (replace(IDENTITY, query="SELECT 2"), ["SELECT 1", "SELECT 2"]),
        (replace(IDENTITY, columns="a: v string"), ["columns", "v int64", "v string"]),
        (replace(IDENTITY, groups=32), ["groups", "16", "32"]),
    ],
)
def test_a_checkpoint_of_another_query_is_refused_with_both_told_apart(
    tmp_path: Path, other: Identity, told: list[str]
) -> None:
    made(tmp_path)
    with pytest.raises(CheckpointError, match="another") as caught:
        opened(tmp_path, other)
    assert all(word in caught.value.message for word in [str(tmp_path), *told])
    assert "new folder" in str(caught.value.hint)
    opened(tmp_path).close()  # the refusal let go of the lock, and changed nothing


def test_a_folder_in_which_something_else_lives_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(CheckpointError, match=r"thesis\.tex") as caught:
        opened(tmp_path)
    assert "new folder" in str(caught.value.hint)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="is a file"):
        opened(tmp_path / "file")


def test_a_first_start_that_was_cut_off_can_be_done_again(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "braid.json").rename(tmp_path / "braid.json.55.pending")
    again = opened(tmp_path)
    assert again.last_commit() == FIRST
    again.close()


def test_a_checkpoint_that_lost_its_identity_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    made(tmp_path, replace(FIRST, batch=7))
    (tmp_path / "braid.json").unlink()
    with pytest.raises(DamagedFile, match=r"braid\.json: it is missing"):
        opened(tmp_path, replace(IDENTITY, groups=32))
    assert not (tmp_path / "braid.json").exists()


def test_a_checkpoint_goes_on_in_its_own_time_zone_alone(tmp_path: Path) -> None:
    berlin, kolkata = (
        replace(IDENTITY, zone=zone) for zone in ("Europe/Berlin", "Asia/Kolkata")
    )
    opened(tmp_path, berlin).close()
    with pytest.raises(CheckpointError, match="made with another time zone") as refused:
        opened(tmp_path, kolkata)
    assert "Europe/Berlin" in str(refused.value)
    opened(tmp_path, berlin).close()


def test_a_checkpoint_that_does_not_tell_its_time_zone_goes_on(tmp_path: Path) -> None:
    body = read_sealed(made(tmp_path) / "braid.json")
    del body["zone"]
    write_sealed(tmp_path / "braid.json", body)
    opened(tmp_path, replace(IDENTITY, zone="Asia/Kolkata")).close()
    assert read_sealed(tmp_path / "braid.json") == body


def test_a_checkpoint_of_another_format_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    body = read_sealed(tmp_path / "braid.json")
    write_sealed(tmp_path / "braid.json", {**body, "format": 99})
    with pytest.raises(CheckpointError, match="format 99"):
        opened(tmp_path)


def test_a_stranger_among_the_commit_records_is_named(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "commits" / "copy of 3.json").write_text("{}")
    checkpoint = opened(tmp_path)
    with pytest.raises(DamagedFile, match=r"copy of 3\.json"):
        checkpoint.last_commit()
    checkpoint.close()


def test_a_checkpoint_copied_without_its_empty_folders_still_works(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "log").rmdir()
    checkpoint = opened(tmp_path)
    checkpoint.sweep(checkpoint.last_commit())
    assert checkpoint.log.is_dir()
    checkpoint.close()


def test_any_bit_that_flips_in_a_sealed_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_sealed(path, {"number": 12, "text": "aé", "list": [None, -1, {"k": []}]})
    data = path.read_bytes()
    for at in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            path.write_bytes(bytes(flipped))
            with pytest.raises(DamagedFile, match=r"x\.json"):
                read_sealed(path)


def test_any_truncation_of_a_sealed_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_sealed(path, {"number": 12})
    data = path.read_bytes().rstrip()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(DamagedFile):
            read_sealed(path)


@pytest.mark.parametrize("name", ["braid.json", "commits/-1.json"])
def test_a_damaged_record_is_named_with_a_cure(tmp_path: Path, name: str) -> None:
    made(tmp_path)
    flip_bit(tmp_path / name, -5)
    with pytest.raises(DamagedFile) as caught:
        opened(tmp_path).last_commit()
    assert str(tmp_path / name) in caught.value.message
    assert "restore it from a copy" in str(caught.value.hint)


def test_a_record_that_is_sealed_but_no_commit_is_damage(tmp_path: Path) -> None:
    made(tmp_path)
    write_sealed(tmp_path / "commits" / "0.json", {"batch": 0})
    checkpoint = opened(tmp_path)
    with pytest.raises(DamagedFile, match="not a commit record"):
        checkpoint.last_commit()
    checkpoint.close()


def test_a_disk_too_full_for_a_new_checkpoint_is_an_error_that_names_it(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "16k"):
        fill_up(tmp_path / "disk" / "ballast")
        with pytest.raises(StorageFull, match="disk") as caught:
            opened(tmp_path / "disk" / "c")
        assert "free some space" in str(caught.value.hint)
        (tmp_path / "disk" / "ballast").unlink()
        opened(tmp_path / "disk" / "c").close()


def test_a_place_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BraidError, match="cannot write to") as caught:
        opened(tmp_path / "file" / "c")
    assert str(tmp_path / "file" / "c") in caught.value.message
    assert "may write to" in str(caught.value.hint)


def test_a_disk_that_turned_read_only_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k"):
        made(tmp_path / "disk" / "c")
        subprocess.run(["mount", "-o", "remount,ro", tmp_path / "disk"], check=True)
        with pytest.raises(BraidError, match="Read-only") as caught:
            opened(tmp_path / "disk" / "c")
        assert str(tmp_path / "disk" / "c") in caught.value.message


def test_a_record_that_is_a_folder_is_damage(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "commits" / "0.json").mkdir()
    checkpoint = opened(tmp_path)
    with pytest.raises(DamagedFile, match="cannot be read"):
        checkpoint.last_commit()
    checkpoint.close()


def fill_up(path: Path) -> None:
    """Fill a small disk to the brim."""
    path.touch()
    with pytest.raises(OSError, match="No space left"):
        rewrite(path, bytes(1 << 20))
