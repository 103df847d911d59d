"""Draws the rows of one piece of a stream.

A piece has a random generator of its own, keyed by (seed, stream, begin of the piece), so that
it comes out the same whoever asks, and whatever was asked before. The rows are those of the
installed NumPy: a new one may draw others, which `test_these_are_the_rows_of_seed_one` notices.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.workload.arrivals import Floats, Ints, Piece
    from braid.workload.spec import WorkloadSpec


@dataclass(frozen=True, slots=True, eq=False)
class DrawnRows:
    """Rows as parallel arrays; times count from the workload's start.

    Invariant: no row arrives before its time, `arrives_us >= ts_us`.
    """

    ts_us: Ints
    arrives_us: Ints
    keys: Ints
    payloads: Ints

    def __len__(self) -> int:
        """How many rows."""
        return len(self.ts_us)

    def take(self, places: Ints | slice) -> DrawnRows:
        """The rows at some places, in that order."""
        return DrawnRows(*(column[places] for column in self._columns()))

    def in_order_of_arrival(self) -> DrawnRows:
        """The rows as they arrive; those that arrive together stay as they are."""
        # On rows made of a few sorted runs, as ours are, the stable sort merely merges.
        return self.take(np.argsort(self.arrives_us, kind="stable"))

    def split(self, moment_us: int) -> tuple[DrawnRows, DrawnRows]:
        """What arrives before a moment, and the rest; rows must be in order of arrival."""
        place = int(np.searchsorted(self.arrives_us, moment_us))
        return self.take(slice(place)), self.take(slice(place, None))

    def _columns(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.ts_us, self.arrives_us, self.keys, self.payloads

    @classmethod
    def joined(cls, parts: Sequence[DrawnRows]) -> DrawnRows:
        """The rows of all parts, one part after the other."""
        columns = zip(*(part._columns() for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


def value_counts(spec: WorkloadSpec) -> Ints:
    """How many join values each partition owns: `k / (P * r)`.

    Rounded so that the sums over partitions are right, not each partition: 33.3 values become
    33, 33, 34, as rounding each down would raise the join rate of them all.
    """
    total = spec.partition_count
    exact = [entry.tuple_range / (total * entry.join_rate) for entry in spec.partitions]
    cumulated = np.cumsum(np.repeat(exact, [entry.count for entry in spec.partitions]))
    counts = np.diff(np.round(cumulated).astype(np.int64), prepend=0)
    at_least_one: Ints = np.maximum(counts, 1)
    return at_least_one


def draw(spec: WorkloadSpec, stream: str, values: Ints, piece: Piece) -> DrawnRows:
    """The rows of one piece, in order of `ts_us`; `values` are the spec's `value_counts`."""
    rng = _generator(spec.seed, stream, piece.lower_us)
    ts_us = _poisson_times(rng, piece)
    keys = _keys(rng, values, piece.regime.shares, len(ts_us))
    payloads = rng.integers(0, 2**31, len(ts_us), dtype=np.int64)
    # Delays are drawn last: the same rows come out with and without disorder.
    delays = rng.integers(0, spec.disorder_us, len(ts_us), endpoint=True)
    return DrawnRows(ts_us, ts_us + delays, keys, payloads)


def _generator(seed: int, stream: str, lower_us: int) -> np.random.Generator:
    digest = blake2b(f"{seed}/{stream}/{lower_us}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "big")))


def _poisson_times(rng: np.random.Generator, piece: Piece) -> Ints:
    """Moments of a Poisson process: a Poisson count, then exponential gaps scaled to fit.

    Gaps scaled to their sum are spread as sorted uniform draws are, so this is the process
    itself and no approximation of it, without sorting.
    """
    length_us = piece.upper_us - piece.lower_us
    count = int(rng.poisson(piece.regime.rate * length_us / 1e6))
    passed: Floats = np.cumsum(rng.standard_exponential(count + 1))
    offsets = (passed[:-1] * (length_us / passed[-1])).astype(np.int64)
    times: Ints = piece.lower_us + np.minimum(offsets, length_us - 1)
    return times


def _keys(rng: np.random.Generator, values: Ints, shares: Floats, count: int) -> Ints:
    """A partition by its share, then one of its values, each as likely as the other.

    Drawing how many rows each partition gets, and then their order, comes to the same as
    drawing a partition for each row, at a quarter of the cost of a search per row.
    """
    sizes = rng.multinomial(count, shares)
    partitions = rng.permutation(np.repeat(np.arange(len(values)), sizes))
    chosen = (rng.random(count) * values[partitions]).astype(np.int64)
    keys: Ints = chosen * len(values) + partitions
    return keys
