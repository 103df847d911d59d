"""What people read about a run's plans."""

from __future__ import annotations

import pytest

from braid.cli.news import sentence_of
from braid.events import Replanned


@pytest.mark.parametrize(
    ("new", "workers", "told"),
    [
        (None, (), "the plan stays P: why"),
        (None, (1,), "the plan of worker 1 stays P: why"),
        ("Q", (), "a better plan is Q: why"),
        ("Q", (0, 2), "a better plan for workers 0, 2 is Q: why"),
    ],
)
def test_a_look_for_a_plan_says_whose_it_is(
    new: str | None, workers: tuple[int, ...], told: str
) -> None:
    assert sentence_of(Replanned(3, "P", new, "why", {}, (), (), workers)) == told
