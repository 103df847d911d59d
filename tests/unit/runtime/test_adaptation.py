"""What users may say of memory."""

from __future__ import annotations

import pytest

from braid.adapt.strategy import make_strategy
from braid.model.errors import BraidError
from braid.runtime.adaptation import memory_settings


def test_what_is_said_of_spilling_is_the_strategys() -> None:
    said = memory_settings("1MB", strategy="lazy-disk", spill_policy="largest", spill_percent=7)
    assert said.strategy == make_strategy("lazy-disk", order="largest", k=7, theta_m=0.9)
    assert said.memory_bytes == 1 << 20


@pytest.mark.parametrize(
    ("strategy", "said", "told"),
    [
        (None, {"spill_percent": 20}, "strategy auto takes no spill percentage"),
        ("relocate-only", {"spill_policy": "largest"}, "takes no spill policy"),
        ("none", {"spill_percent": 20}, "strategy none takes no spill percentage"),
    ],
)
def test_a_strategy_that_does_not_take_it_says_who_does(
    strategy: str | None, said: dict[str, object], told: str
) -> None:
    with pytest.raises(BraidError, match=told) as caught:
        memory_settings("1MB", strategy=strategy, **said)  # type: ignore[arg-type]
    assert caught.value.hint is not None
    assert "lazy-disk" in caught.value.hint
