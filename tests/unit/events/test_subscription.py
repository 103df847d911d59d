"""Whoever is slow holds nobody up, and is told what it has missed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from braid.events import (
    BatchRetried,
    EventsMissed,
    Finished,
    Journal,
    ToldEvent,
    follow,
)

if TYPE_CHECKING:
    from pathlib import Path

END = Finished("stopped", 0, 0, 0, 0)


def test_a_subscriber_gets_events_in_order_until_the_end() -> None:
    journal = Journal(run="r")
    journal.add(BatchRetried(0, "before"))
    subscription = journal.subscribe(10)
    journal.add(BatchRetried(1, "x"))
    journal.add(END)
    journal.close()
    told = list(subscription)
    assert [each.event for each in told] == [BatchRetried(1, "x"), END]
    assert [(each.run, each.sequence) for each in told] == [("r", 1), ("r", 2)]


def test_a_slow_subscriber_is_told_how_many_it_has_missed() -> None:
    journal = Journal()
    subscription = journal.subscribe(2)
    for batch in range(5):
        journal.add(BatchRetried(batch, ""))
    journal.close()
    missed, *others = (each.event for each in subscription)
    assert missed == EventsMissed(3)
    assert others == [BatchRetried(3, ""), BatchRetried(4, "")]


def test_a_subscriber_waits_for_what_comes() -> None:
    journal, heard = Journal(), list[ToldEvent]()
    subscription = journal.subscribe(10)
    assert subscription.take(timeout_s=0.01) is None
    waiter = threading.Thread(target=lambda: heard.extend(subscription))
    waiter.start()
    journal.add(END)
    journal.close()
    waiter.join(10)
    assert [each.event for each in heard] == [END]


def test_another_process_may_follow_a_file_while_it_is_written(tmp_path: Path) -> None:
    path, heard = tmp_path / "events.jsonl", list[ToldEvent]()
    reader = threading.Thread(target=lambda: heard.extend(follow(path, pause_s=0.001)))
    reader.start()
    journal = Journal(path, "r")
    journal.add(BatchRetried(0, "é\nü"))
    journal.add(END)
    reader.join(10)
    journal.close()
    assert [each.event for each in heard] == [BatchRetried(0, "é\nü"), END]
    assert [each.sequence for each in heard] == [0, 1]


def test_a_run_that_was_killed_is_not_followed_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert list(follow(path, 0.001, lambda: True)) == []
    journal = Journal(path, "r")
    journal.add(BatchRetried(0, ""))
    journal.close()
    assert len(list(follow(path, 0.001, lambda: True))) == 1
