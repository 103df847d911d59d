from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from braid.engine.loop import BatchLoop
from braid.model.errors import BraidError


@pytest.mark.parametrize("number", [5, 8])
def test_a_batch_of_sparks_comes_again_or_is_the_next(number: int) -> None:
    engine = cast("Any", SimpleNamespace(commit=SimpleNamespace(source_batch=6)))
    loop = BatchLoop(engine)
    with pytest.raises(BraidError, match=f"batch {number} came after batch 6") as refused:
        loop.on_source_batch(None, number)
    assert "one copy" in str(refused.value.hint)
