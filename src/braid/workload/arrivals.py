"""A stream's time axis, cut into pieces that can be drawn one without the other.

Cuts are made where a phase begins and, from there, at every `piece_us`. They depend on the
spec alone, never on the slice that someone asks for: that is what makes any slicing give the
same rows. All times count from the workload's start. Rows are drawn in `braid.workload.draw`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from braid.workload.spec import MOST_SECONDS, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.workload.spec import StreamSpec, WorkloadSpec

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PIECE_ROWS = 65_536
"""Rows of a piece, about: many enough to hide NumPy's overhead, few enough to stay in cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Regime:
    """A phase with nothing left open: partition `p` gets `shares[p]` of its tuples."""

    length_us: int
    rate: float
    shares: Floats

    @property
    def piece_us(self) -> int:
        """Length of a piece; at most a minute, so that slices of slow streams are cheap too."""
        expected_us = PIECE_ROWS * 1e6 / self.rate if self.rate else 60e6
        return int(min(60e6, max(1e3, expected_us)))


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A stretch `lower_us:upper_us` of one stream under one regime."""

    lower_us: int
    upper_us: int
    regime: Regime


def regimes(spec: WorkloadSpec, stream: StreamSpec) -> tuple[Regime, ...]:
    """The phases of a stream, its constant rate being one long phase."""
    phases = stream.phases or (Phase(MOST_SECONDS),)
    return tuple(
        Regime(
            round(phase.seconds * 1e6),
            stream.rate if phase.rate is None else phase.rate,
            _shares(spec, phase.weights),
        )
        for phase in phases
    )


def pieces(order: Sequence[Regime], lower_us: int, upper_us: int) -> Iterator[Piece]:
    """All pieces that share a moment with `lower_us:upper_us`; regimes take turns for ever."""
    lower_us = max(0, lower_us)
    for opened_us, regime in _openings(order, lower_us, upper_us):
        step = regime.piece_us
        first = max(0, (lower_us - opened_us) // step * step)
        last = min(regime.length_us, upper_us - opened_us)
        for offset in range(first, last, step):
            end = min(offset + step, regime.length_us)
            yield Piece(opened_us + offset, opened_us + end, regime)


def _openings(
    order: Sequence[Regime], lower_us: int, upper_us: int
) -> Iterator[tuple[int, Regime]]:
    """The moments at which a regime begins, for those that overlap `lower_us:upper_us`."""
    period_us = sum(regime.length_us for regime in order)
    opened_us = lower_us // period_us * period_us
    for regime in cycle(order):
        if opened_us >= upper_us:
            return
        if opened_us + regime.length_us > lower_us:
            yield opened_us, regime
        opened_us += regime.length_us


def _shares(spec: WorkloadSpec, weights: Sequence[float] | None) -> Floats:
    chosen = weights or [entry.weight for entry in spec.partitions]
    loads = np.repeat(np.asarray(chosen, float), [entry.count for entry in spec.partitions])
    loads *= np.arange(1, len(loads) + 1, dtype=float) ** -spec.zipf
    shares: Floats = loads / loads.sum()
    return shares
