"""What things cost: from 1.00 to a million, in cents, each tenfold as likely as the next."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from braid.workload.arrivals import Floats, Ints
    from braid.workload.nexmark.chance import Chance

_STEPS = 4096


def price(chance: Chance, purpose: str) -> Ints:
    """Prices whose logarithm is spread evenly.

    Powers differ from machine to machine in their last digit; sums and products do not. So
    there are powers at the ends of some thousand steps, rounded, and straight lines between.
    """
    place = chance.fraction(purpose) * _STEPS
    step = place.astype(np.int64)
    edges = _edges()
    cents = edges[step] + (edges[step + 1] - edges[step]) * (place - step)
    return cents.astype(np.int64)


@cache
def _edges() -> Floats:
    edges: Floats = np.rint(100 * 10.0 ** (6 * np.arange(_STEPS + 1) / _STEPS))
    return edges
