"""What the demo says in the end of what the run has done about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.cli.demo import _Done
from braid.events import Spilled

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
