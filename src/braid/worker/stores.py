"""Where a worker keeps its runs: one store for each space, for the groups that are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.state.store import Ownership, RunStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray


def worker_stores(
    owned: Sequence[NDArray[np.bool_]],
    tiers: Mapping[str, Path],
    log: Path,
    *,
    memory_bytes: int | None,
    is_firm: bool,
    refusal: str = "",
) -> dict[int, RunStore]:
    """A worker's stores by space, in folders that exist; `owned` are its groups there."""
    return {
        space: RunStore(tiers, log, Ownership(len(mine), mine), memory_bytes, is_firm, refusal)
        for space, mine in enumerate(owned)
    }
