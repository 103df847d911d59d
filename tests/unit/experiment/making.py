"""Outcomes of trials that nobody ran."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from braid.experiment.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence


def outcome(taken_ms: Sequence[int], **known: Any) -> Outcome:
    """Ten rows in and a result out with every batch."""
    batches = range(1, len(taken_ms) + 1)
    plain = Outcome(
        input_rows=tuple(10 * batch for batch in batches),
        output_rows=tuple(batches),
        memory_bytes=((100,),) * len(taken_ms),
        state_bytes=(100,) * len(taken_ms),
        state_rows=(50,) * len(taken_ms),
        joined_rows=(20,) * len(taken_ms),
        taken_ms=tuple(taken_ms),
        changes=(),
        spills=0,
        relocations=0,
        moved_rows=0,
        cleanup_rows=(0,),
        cleanup_ms=(0,),
        all_rows=len(taken_ms),
    )
    return replace(plain, **known)
