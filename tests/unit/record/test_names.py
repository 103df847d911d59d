from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.model.errors import DamagedFile
from braid.record.names import NameList
from tests.unit.state.making import flip_bit, quick_folder

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.dictionaries(st.sampled_from("ab"), st.lists(st.text(min_size=1), max_size=3))


@given(batches=st.lists(NAMES, max_size=6), committed=st.integers(0, 6))
def test_a_list_knows_just_the_names_of_committed_batches(
    batches: list[dict[str, list[str]]], committed: int
) -> None:
    with quick_folder() as folder:
        names = NameList.open(folder / "read", None)
        positions = [None, *(names.append(batch) for batch in batches)]
        committed = min(committed, len(batches))
        again = NameList.open(folder / "read", positions[committed])
        for stream in "ab":
            expected = {n for batch in batches[:committed] for n in batch.get(stream, ())}
            assert again.read.get(stream, set()) == expected
        rest = [again.append(batch) for batch in batches[committed:]]
        assert rest == positions[committed + 1 :]


def test_a_list_that_was_cut_off_lost_or_changed_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "read"
    position = NameList.open(path, None).append({"a": ["0.csv"]})
    good = path.read_bytes()
    for bad in (good[:-1], b"", None):
        path.unlink() if bad is None else path.write_bytes(bad)
        with pytest.raises(DamagedFile, match="read"):
            NameList.open(path, position)
    path.write_bytes(good)
    flip_bit(path, 5)
    with pytest.raises(DamagedFile, match="checksum"):
        NameList.open(path, position)


def test_what_an_uncommitted_batch_appended_is_forgotten_for_good(tmp_path: Path) -> None:
    names = NameList.open(tmp_path / "read", None)
    first = names.append({"a": ["0"]})
    names.append({"a": ["a name that is longer than the next"]})
    again = NameList.open(tmp_path / "read", first)
    second = again.append({"a": ["1"]})
    assert NameList.open(tmp_path / "read", second).read == {"a": {"0", "1"}}
