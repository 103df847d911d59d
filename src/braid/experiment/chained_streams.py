"""Streams that are joined in a chain, each with the next on a key of their own.

A selectivity is the part of all pairs that join, so a key has as many values as its inverse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.workload import write_slices

if TYPE_CHECKING:
    from pathlib import Path

_TIME = pa.timestamp("us", "UTC")
_VALUES = 1 << 20


@dataclass(frozen=True, slots=True)
class ChainedStreams:
    """Poisson streams a, b, c …, joined as a.x = b.x, b.y = c.y and so on, within a window.

    Rates are in rows per second of event time, selectivities are of neighbours. At each of the
    `switches`, moments in seconds, the selectivities trade places: the first becomes the last.
    """

    rates: tuple[float, ...]
    selectivities: tuple[float, ...]
    window_s: float
    seconds: float
    batch_s: float = 1.0
    switches: tuple[float, ...] = ()

    @property
    def streams(self) -> tuple[str, ...]:
        """Their names."""
        return tuple("abcd"[: len(self.rates)])

    @property
    def query(self) -> str:
        """The query's text."""
        window = f"[RANGE {round(self.window_s * 1000)} MILLISECONDS]"
        columns = ", ".join(f"{name}.v AS v{name}" for name in self.streams)
        streams = ", ".join(f"{name} {window}" for name in self.streams)
        pairs = zip(pairwise(self.streams), "xyz", strict=False)
        keys = " AND ".join(f"{one}.{key} = {other}.{key}" for (one, other), key in pairs)
        return f"SELECT {columns} FROM {streams} WHERE {keys}"

    @property
    def groups(self) -> int:
        """More than there are workers, by far."""
        return 64

    @property
    def batches(self) -> int:
        """How many there are."""
        return round(self.seconds / self.batch_s)

    def batch_at(self, moment_s: float) -> int:
        """The number of the batch that begins at a moment."""
        return round(moment_s / self.batch_s)

    def scaled(self, factor: float) -> ChainedStreams:
        """So many times the rows, each of which finds as many matches as before."""
        return replace(
            self,
            rates=tuple(rate * factor for rate in self.rates),
            selectivities=tuple(part / factor for part in self.selectivities),
        )

    def write(self, folder: Path) -> None:
        """Write a folder per stream, with a file per batch."""
        for number, name in enumerate(self.streams):
            write_slices(
                partial(self.rows, number),
                name,
                folder / name,
                seconds=self.seconds,
                file_seconds=self.batch_s,
            )

    def rows(self, stream: int, lower_us: int, upper_us: int) -> pa.Table:
        """The rows of a batch, in order of time."""
        draw = np.random.default_rng((stream, lower_us))
        count = draw.poisson(self.rates[stream] * (upper_us - lower_us) / 1e6)
        at = np.sort(draw.integers(lower_us, upper_us, count))
        columns = {"ts": pa.array(at, _TIME), "v": pa.array(draw.integers(0, _VALUES, count))}
        selectivities = self.selectivities_at(lower_us / 1e6)
        for key in (stream - 1, stream):
            if 0 <= key < len(selectivities):
                values = max(1, round(1 / selectivities[key]))
                columns["xyz"[key]] = pa.array(draw.integers(0, values, count))
        return pa.table(columns)

    def selectivities_at(self, moment_s: float) -> tuple[float, ...]:
        """Those of the time after the last switch."""
        switched = sum(switch <= moment_s for switch in self.switches) % 2
        return self.selectivities[::-1] if switched else self.selectivities
