"""Records that are sealed, and lie."""

from __future__ import annotations

import json
import os
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.model.errors import CheckpointError
from braid.record.checkpoint import Checkpoint, Identity, read_sealed, write_sealed
from braid.record.commit import Commit, ResultFile, first_commit
from braid.record.generation import Generation
from braid.record.move import Move, Waiting
from braid.record.names import NameList
from braid.state.runs import Section, SortedRun
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDENTITY = Identity("SELECT 1", "a: v int64", 16)
FIRST = first_commit(2, 1, 2, 1, 16, 2)


def run(name: str) -> SortedRun:
    section = Section(f"{name} log", 0, 4, "abc", 1, ((0, 1),))
    return SortedRun(f"{name} file", "disk", 4, "abc", 1, 0, 1, (section,))


FULL = replace(
    FIRST,
    batch=3,
    ladders=(((run("ladder"),), ()), ((), ())),
    generations=((Generation(0, 1, ((0, 4),), None, {0: run("generation")}),), ()),
    moves=(Move(0, 1, 0, (0,), runs={0: run("move")}),),
    waiting=((Waiting(0, 0, 0, Section("waiting log", 0, 4, "abc", 1), None),), ()),
    staged="/out/.staging/3-0123abcd",
    parts=(ResultFile("part file", 1, 4, "abc"),),
    late_parts=(ResultFile("stream=a/late file", 1, 4, "abc"),),
    position={"length": 3, "checksum": "abc"},
)
HOSTILE: list[Any] = [
    "../x",
    "/etc/passwd",
    "..",
    ".",
    "",
    "a/../../b",
    "a\0b",
    None,
    7,
    [],
    {},
]


def leaves(data: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The ways to all values inside a JSON value."""
    if isinstance(data, dict | list):
        for place, part in data.items() if isinstance(data, dict) else enumerate(data):
            yield from leaves(part, (*way, place))
    else:
        yield way, data


WAYS = list(leaves(FULL.to_json()))
NAMES = [way for way, value in WAYS if str(value).endswith((" file", " log"))]


def forged(way: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The record with another value in one place."""
    record = deepcopy(FULL.to_json())
    inner = record
    for place in way[:-1]:
        inner = inner[place]
    inner[way[-1]] = value
    return record


def read(folder: Path, record: Any) -> Commit:
    """What is read of a sealed record; its log is not there."""
    write_sealed(folder / "commits" / "3.json", record)
    checkpoint = Checkpoint.open(folder, IDENTITY, FIRST)
    try:
        return checkpoint.last_commit()
    finally:
        checkpoint.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Checkpoint.open(tmp_path / "checkpoint", IDENTITY, FIRST).close()
    return tmp_path / "checkpoint"


@pytest.mark.parametrize("way", NAMES, ids=str)
def test_a_name_in_a_record_cannot_lead_out_of_its_folder(
    folder: Path, way: tuple[Any, ...]
) -> None:
    assert len(NAMES) == 9, "all kinds of names"
    for name in HOSTILE:
        with pytest.raises(CheckpointError, match="not a commit record") as caught:
            read(folder, forged(way, name))
        assert "3.json" in caught.value.message


@settings(deadline=None)
@given(
    way=st.sampled_from([way for way, _ in WAYS]),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ),
)
def test_a_record_that_lies_is_read_or_is_one_clear_error(
    way: tuple[Any, ...], value: Any
) -> None:
    with quick_folder() as place:
        Checkpoint.open(place / "checkpoint", IDENTITY, FIRST).close()
        with pytest.raises(CheckpointError) as caught:  # at the latest, as the log is missing
            read(place / "checkpoint", forged(way, value))
        assert caught.value.hint


@pytest.mark.parametrize("depth", [40, 900, 100_000])
def test_a_record_that_is_nested_too_deep_is_one_clear_error(folder: Path, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    for name in ("commits/3.json", "published.json", "braid.json"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json, "dumps", lambda *_, **__: f'{{"batch":{nested}}}')
            write_sealed(folder / name, {})
        with pytest.raises(CheckpointError, match="nested"):
            read_sealed(folder / name)


def test_a_record_that_is_huge_or_no_file_is_one_clear_error(folder: Path) -> None:
    path = folder / "published.json"
    os.truncate(path, 1 << 40)
    with pytest.raises(CheckpointError, match="more than any record"):
        read_sealed(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match="no regular file"):
        read_sealed(path)


@pytest.mark.parametrize("name", HOSTILE)
def test_the_id_of_a_checkpoint_cannot_be_a_path(folder: Path, name: Any) -> None:
    write_sealed(folder / "braid.json", read_sealed(folder / "braid.json") | {"id": name})
    with pytest.raises(CheckpointError, match="its id"):
        Checkpoint.open(folder, IDENTITY, FIRST)


def test_a_record_of_another_batch_is_found(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="record of batch 4"):
        read(folder, (replace(FULL, batch=4)).to_json())


@pytest.mark.parametrize("line", [b"[" * 100_000, b"[1]", b'{"a":1}', b"x"])
def test_a_list_of_files_that_is_none_is_one_clear_error(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "read.jsonl"
    lying = NameList(path)
    lying._count(line)
    path.write_bytes(line)
    with pytest.raises(CheckpointError, match="not a list of files"):
        NameList.open(path, lying._position())
    for position in ({}, {"length": "x"}, {"length": -1}, []):
        with pytest.raises(CheckpointError):
            NameList.open(path, position)
