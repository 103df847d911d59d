"""What the demo says in the end of what the run has done about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.cli.demo import _Done
from braid.events import Migrated, Relocated, Spilled

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.events import Event


def told(*events: Event) -> str:
    def listen(listener: Callable[[Event], None]) -> None:
        for event in events:
            listener(event)

    return _Done(listen).told()


def test_what_was_done_once_is_told_as_one() -> None:
    spill = Spilled(7, 0, 0, 3, 1000, "above its budget", {})
    sentence = "worker 0 pushed 3 groups (1.0 KB) to disk: above its budget"
    assert told() == ""
    assert told(spill) == f"1 spill: {sentence}"
    assert told(spill, spill) == f"2 spills; the first: {sentence}"


def test_what_was_begun_or_refused_is_not_counted_as_done() -> None:
    def change(step: str) -> Migrated:
        return Migrated(7, step, "moving-state", "(a b c)", "((a b) c)", "saves CPU", {})

    def move(step: str) -> Relocated:
        return Relocated(7, step, 0, 1, 0, 3, 50, 1000, "it will overflow", {})

    assert told(change("start"), change("refused"), change("given up"), move("send")) == ""
    assert told(Spilled(7, 0, 0, 0, 0, "its groups move", {})) == ""
    assert told(change("start"), change("fill"), change("end")) == (
        "1 change of plan: the plan has changed from (a b c) to ((a b) c) by moving-state: "
        "saves CPU"
    )
