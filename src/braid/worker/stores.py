"""Where a worker keeps its runs: one store for each space, for the groups that are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.state.store import Ownership, RunStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from braid.record.commit import Commit


def worker_stores(
    commit: Commit,
    worker: int,
    tiers: Mapping[str, Path],
    log: Path,
    *,
    memory_bytes: int | None,
    is_firm: bool,
    refusal: str = "",
) -> dict[int, RunStore]:
    """A worker's stores by space, in folders that exist."""
    owned = (commit.owned(space, worker) for space in range(len(commit.assignments)))
    return {
        space: RunStore(tiers, log, Ownership(len(mine), mine), memory_bytes, is_firm, refusal)
        for space, mine in enumerate(owned)
    }
