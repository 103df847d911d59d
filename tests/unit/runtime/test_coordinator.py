from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from braid.model.errors import BraidError
from braid.runtime.coordinator import Coordinator


@pytest.mark.parametrize("number", [5, 8])
def test_a_batch_of_sparks_comes_again_or_is_the_next(number: int) -> None:
    coordinator = cast("Any", SimpleNamespace(commit=SimpleNamespace(source_batch=6)))
    with pytest.raises(BraidError, match=f"batch {number} came after batch 6") as refused:
        Coordinator.on_source_batch(coordinator, cast("Any", None), number)
    assert "one copy" in str(refused.value.hint)
