"""Initial shares of the groups per worker, as people write them: `0.6,0.2,0.2`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Sequence

_NEAR = 1e-6


def parse_shares(text: str, workers: int) -> tuple[float, ...]:
    """Read one share per worker; they must sum to 1, and do so exactly afterwards.

    >>> parse_shares("0.6, 0.2, 0.2", 3)
    (0.6, 0.2, 0.2)
    """
    shares = [_share(part, text) for part in text.split(",")]
    if len(shares) != workers:
        raise BraidError(
            f"there are {len(shares)} shares in {text!r}, and {workers} workers",
            hint="write one share per worker, with commas between them",
        )
    total = math.fsum(shares)
    if abs(total - 1) > _NEAR:
        raise BraidError(
            f"the shares {text!r} sum to {total:.7g}, not to 1",
            hint="thirds need seven digits: 0.3333333,0.3333333,0.3333334",
        )
    return tuple(share / total for share in shares)


def shared_assignment(groups: int, shares: Sequence[float]) -> tuple[int, ...]:
    """The worker of every group: contiguous ranges, rounded by the largest remainder.

    Ties go to the lower worker.

    >>> shared_assignment(8, (0.6, 0.2, 0.2))
    (0, 0, 0, 0, 0, 1, 1, 2)
    """
    # Rounded, so that floating point neither breaks ties nor spoils whole numbers.
    exact = [round(share * groups, 6) for share in shares]
    counts = [math.floor(count) for count in exact]
    order = sorted(
        range(len(shares)), key=lambda worker: round(counts[worker] - exact[worker], 6)
    )
    for worker in order[: groups - sum(counts)]:
        counts[worker] += 1
    return tuple(worker for worker, count in enumerate(counts) for _ in range(count))


def _share(part: str, text: str) -> float:
    try:
        share = float(part)
    except ValueError:
        share = math.nan
    if not 0 <= share < math.inf:
        raise BraidError(
            f"cannot read the share {part.strip()!r} in {text!r}",
            hint="write numbers from 0 to 1 with commas between them, such as '0.6,0.2,0.2'",
        )
    return share
