"""Three streams of one key, of which each worker's rows come at rates of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.plan.keys import hash_of_key
from braid.plan.placement import ByHash
from braid.state.groups import group_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

STREAMS = ("a", "b", "c")
GROUPS, WORKERS = 16, 2
WINDOW_S = 2
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
_KEYS = 12  # of each worker

QUERY = (
    "SELECT a.v AS va, b.v AS vb, c.v AS vc FROM "
    + ", ".join(f"{name} [RANGE {WINDOW_S} SECONDS]" for name in STREAMS)
    + " WHERE a.k = b.k AND b.k = c.k"
)


@cache
def keys_of_worker(worker: int) -> NDArray[np.int64]:
    """Some keys whose groups a worker has from the beginning."""
    candidates = np.arange(20 * _KEYS)
    groups = group_of(hash_of_key(pa.array(candidates)), GROUPS)
    owners = np.array(ByHash.equal_shares(GROUPS, WORKERS).owners)[groups]
    return candidates[owners == worker][:_KEYS]


@dataclass(frozen=True)
class Uneven:
    """`rates(worker, second)` are those of the streams in the worker's groups."""

    rates: Callable[[int, int], tuple[int, int, int]]

    def rows(self, stream: str, second: int) -> pa.Table:
        """What comes of a stream in a second, on all workers."""
        number = STREAMS.index(stream)
        draw = np.random.default_rng((number, second))
        rates = [self.rates(worker, second)[number] for worker in range(WORKERS)]
        keys = [draw.choice(keys_of_worker(w), rate) for w, rate in enumerate(rates)]
        at = np.sort(draw.integers(0, 1_000_000, sum(rates))) + second * 1_000_000
        columns = {
            "k": draw.permutation(np.concatenate(keys)),
            "v": draw.integers(0, 40, sum(rates)),
            "ts": pa.array(at).cast(SCHEMA.field("ts").type),
        }
        return pa.table(columns, schema=SCHEMA)


AB_FIRST, BC_FIRST = (6, 24, 96), (96, 24, 6)
"""Rates at which the first two of the streams make the fewest rows, or the last two."""

APART = Uneven(lambda worker, second: (AB_FIRST, BC_FIRST)[worker])
SWITCH_S = 10
SWITCHING = Uneven(lambda worker, second: AB_FIRST if second < SWITCH_S else BC_FIRST)
