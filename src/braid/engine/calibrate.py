"""What a join's operations cost on this machine, in seconds of one core.

Measured is what workers do with every row: sort it into a run, merge runs, drop it from a run
that is rewritten, search runs for matches, and fetch these.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.optimize.cost_model import IndexProbes
from braid.state.horizon import Horizon, alive
from braid.state.order import merge_rows, sort_rows
from braid.state.runs import TIME, encode, hashes_of, times_of
from braid.worker.gather import gather
from braid.worker.kernel import combine_bounds, expand, locate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_BATCH_ROWS = 1 << 15
_RUNS = 4
"""Each twice as long as the one before it: a row is merged as many times."""
_KEYS = 1 << 16
_WINDOW_US = 10_000_000
_VALUE = 2  # the place of a column behind hash and time


@cache
def measure_operations(rounds: int = 5) -> IndexProbes:
    """The costs of what workers do, without shuffles.

    The quickest of several rounds counts, as others may use the machine at the same time. They
    take a second or two, once in a process.
    """
    random = np.random.default_rng(1)
    present, absent = random.integers(0, 2**64, (2, _KEYS), np.uint64)
    batch = _rows(random, present, _BATCH_ROWS)
    runs = [sort_rows(_rows(random, present, _BATCH_ROWS << level)) for level in range(_RUNS)]
    state_rows = sum(run.num_rows for run in runs)
    made = merge_rows(runs)
    sorting = _quickest(lambda: encode(sort_rows(batch)), rounds) / _BATCH_ROWS
    merging = _quickest(lambda: encode(merge_rows(runs)), rounds) / state_rows
    half = Horizon(_WINDOW_US // 2)
    purging = _quickest(lambda: encode(alive(made, half)), rounds) / state_rows
    fruitless = sort_rows(_rows(random, absent, _BATCH_ROWS))
    searching = _quickest(lambda: _probe(fruitless, runs), rounds) / _BATCH_ROWS
    fruitful = sort_rows(batch)
    matches = _probe(fruitful, runs)
    finding = _quickest(lambda: _probe(fruitful, runs), rounds) - searching * _BATCH_ROWS
    return IndexProbes(
        insert=sorting + _RUNS * merging,
        purge=purging,
        search=searching,
        match=max(0.0, finding) / matches,
        shuffle=0.0,
    )


def _rows(
    random: np.random.Generator, hashes: NDArray[np.uint64], count: int
) -> pa.RecordBatch:
    """Rows with some of these hashes, within one window."""
    columns = {
        "hash": random.choice(hashes, count),
        "time": np.sort(random.integers(0, _WINDOW_US, count)),
        "value": random.integers(0, 2**32, count),
    }
    return pa.record_batch({name: pa.array(values) for name, values in columns.items()})


def _probe(probes: pa.RecordBatch, runs: list[pa.RecordBatch]) -> int:
    """Find and fetch the matches of a batch in all runs; how many there are."""
    hashes, newest = hashes_of(probes), times_of(probes)
    starts = np.zeros((len(runs), len(hashes)), np.int64)
    counts = np.zeros_like(starts)
    oldest, deadline = newest - _WINDOW_US, newest + _WINDOW_US
    for number, run in enumerate(runs):
        locate(
            hashes_of(run),
            times_of(run),
            hashes,
            oldest,
            deadline,
            starts[number],
            counts[number],
        )
    of_probe, found = expand(starts, counts)
    times = gather([run.column(TIME) for run in runs], found).to_numpy()
    combine_bounds(of_probe, hashes, newest, deadline, times, times + _WINDOW_US)
    gather([run.column(_VALUE) for run in runs], found)
    return len(found)


def _quickest(step: Callable[[], object], rounds: int) -> float:
    """Seconds of the quickest round, after one that compiles."""
    step()
    taken = []
    for _ in range(rounds):
        began = perf_counter()
        step()
        taken.append(perf_counter() - began)
    return min(taken)
