from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from braid.front.places import check_apart, places_of
from braid.front.sinks import MemorySink, ParquetSink
from braid.model.errors import BraidError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("late", ["out", "link", "out/../out", "link/../out"])
def test_results_and_late_rows_cannot_share_a_folder_whatever_its_name(
    tmp_path: Path, late: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    out, kept = (ParquetSink(tmp_path / name) for name in ("out", late))
    with pytest.raises(BraidError, match="cannot share the folder"):
        check_apart(places_of(tmp_path / "c", out, kept, None))


@pytest.mark.parametrize("inside", ["c", "c/x", "link/x", "c/log"])
@pytest.mark.parametrize("what", ["output", "folder for late rows", "events file"])
def test_nothing_else_lies_in_the_checkpoint(tmp_path: Path, what: str, inside: str) -> None:
    (tmp_path / "link").symlink_to("c")
    place = tmp_path / inside
    places = {
        "output": places_of(tmp_path / "c", ParquetSink(place), None, None),
        "folder for late rows": places_of(
            tmp_path / "c", MemorySink(), ParquetSink(place), None
        ),
        "events file": places_of(tmp_path / "c", MemorySink(), None, place),
    }
    with pytest.raises(BraidError, match=f"the {what} .* lies in the checkpoint") as refused:
        check_apart(places[what])
    assert str(place) in refused.value.message
    assert "outside of the checkpoint" in str(refused.value.hint)


def test_places_beside_each_other_are_apart(tmp_path: Path) -> None:
    out, late = ParquetSink(tmp_path / "out"), ParquetSink(tmp_path / "out" / "late")
    check_apart(places_of(tmp_path / "out" / "_checkpoint", out, late, tmp_path / "e.jsonl"))
