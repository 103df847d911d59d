from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from braid.events import BatchRetried, Event, Finished, Journal
from braid.model.errors import BraidError
from tests.unit.state.making import small_disk

if TYPE_CHECKING:
    from pathlib import Path

END = Finished("stopped", 0, 0, 0, 0)


def test_events_are_kept_in_order_and_told_to_listeners_from_then_on() -> None:
    journal = Journal()
    journal.add(BatchRetried(0, "x"))
    heard: list[Event] = []
    journal.listen(heard.append)
    journal.add(END)
    assert [record["event"] for record in journal.records()] == ["retried", "finished"]
    assert heard == [END]


def test_a_listener_that_raises_keeps_an_event_from_nobody(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    journal = Journal(path)
    heard: list[Event] = []

    def refuse(event: Event) -> None:
        raise ValueError(f"no {event.name}")

    for listener in (refuse, heard.append, refuse):
        journal.listen(listener)
    for event in (BatchRetried(0, "x"), END):
        with pytest.raises(ValueError, match=f"no {event.name}"):
            journal.add(event)
    journal.close()
    assert [event.name for event in heard] == ["retried", "finished"]
    assert len(path.read_text().splitlines()) == 2


def test_events_are_appended_to_a_file_line_by_line_as_they_happen(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for _ in range(2):
        journal = Journal(path)
        journal.add(BatchRetried(1, "é\nü"))
        assert json.loads(path.read_text().splitlines()[-1])["reason"] == "é\nü"
        journal.add(END)
        journal.close()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["event"] for record in records] == ["retried", "finished"] * 2


def test_a_missing_folder_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(BraidError, match="there is no folder") as caught:
        Journal(tmp_path / "none" / "events.jsonl")
    assert str(tmp_path / "none") in caught.value.message
    assert "make the folder" in str(caught.value.hint)
    assert not list(tmp_path.iterdir())


def test_a_line_that_a_kill_left_unfinished_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "started"}\n{"event": "ba')
    journal = Journal(path)
    journal.add(END)
    journal.close()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["event"] for record in records] == ["started", "finished"]


def test_a_place_that_cannot_be_written_is_named_with_a_cure(tmp_path: Path) -> None:
    with pytest.raises(BraidError, match="cannot write events to") as caught:
        Journal(tmp_path)
    assert str(tmp_path) in caught.value.message
    assert "--events" in str(caught.value.hint)


def test_a_full_disk_is_told_once_and_the_end_of_the_run_can_still_be_taken_down(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", "8k"):
        journal = Journal(tmp_path / "disk" / "events.jsonl")
        with pytest.raises(BraidError, match="No space left") as caught:
            fill(journal)
        assert "--events" in str(caught.value.hint)
        journal.add(END)
        assert journal.records()[-1]["event"] == "finished"
        journal.close()


def fill(journal: Journal) -> None:
    for number in range(1000):
        journal.add(BatchRetried(number, "a reason"))
