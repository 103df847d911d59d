"""Finding matches: sorted probes against a sorted run, compiled.

Probes and run are both sorted by key hash, so the search gallops forward from the last match
and touches each part of the run at most once. A probe asks for one key and one range of event
times, which is one slice of the run: the window is checked by where we look, not afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from braid.state.compiled import compiled
from braid.worker.gather import ROW_BITS

if TYPE_CHECKING:
    from braid.state.groups import Hashes
    from braid.state.runs import Times

Counts = NDArray[np.int64]


@compiled(inline="always")
def _gallop(hashes: Hashes, wanted: np.uint64, start: int, after: bool) -> int:
    """The first place from `start` on whose hash is not below (`after`: is above) `wanted`."""
    end = len(hashes)
    step = 1
    low = start
    while low + step <= end and (
        hashes[low + step - 1] < wanted or (after and hashes[low + step - 1] == wanted)
    ):
        low += step
        step *= 2
    high = min(low + step - 1, end)
    while low < high:
        middle = (low + high) // 2
        if hashes[middle] < wanted or (after and hashes[middle] == wanted):
            low = middle + 1
        else:
            high = middle
    return low


@compiled()
def locate(
    run_hashes: Hashes,
    run_times: Times,
    hashes: Hashes,
    oldest: Times,
    newest: Times,
    starts: Counts,
    counts: Counts,
) -> None:
    """For each probe, where its matches start in the run, and how many there are.

    `hashes` must be sorted. Matches have the probe's hash and a time in `oldest ... newest`,
    bounds included. `starts` and `counts` are written.
    """
    lower = upper = 0
    last = np.uint64(0)
    for probe in range(len(hashes)):
        if probe == 0 or hashes[probe] != last:
            last = hashes[probe]
            lower = _gallop(run_hashes, last, upper, False)
            upper = _gallop(run_hashes, last, lower, True)
        low, high = lower, upper
        while low < high:
            middle = (low + high) // 2
            if run_times[middle] < oldest[probe]:
                low = middle + 1
            else:
                high = middle
        start = low
        high = upper
        while low < high:
            middle = (low + high) // 2
            if run_times[middle] <= newest[probe]:
                low = middle + 1
            else:
                high = middle
        starts[probe] = start
        counts[probe] = low - start


@compiled()
def expand(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[Counts, Counts]:
    """All matches, ordered by probe: the probe's number, and the reference of the row.

    `starts` and `counts` have one line per run and one column per probe.
    """
    runs, probes = counts.shape
    total = counts.sum()
    of_probe = np.empty(total, np.int64)
    row = np.empty(total, np.int64)
    at = 0
    for probe in range(probes):
        for run in range(runs):
            reference = (np.int64(run) << ROW_BITS) + starts[run, probe]
            for i in range(counts[run, probe]):
                of_probe[at] = probe
                row[at] = reference + i
                at += 1
    return of_probe, row


@compiled()
def combine_bounds(
    of_probe: Counts,
    hashes: Hashes,
    newest: Times,
    deadline: Times,
    times: Times,
    deadlines: Times,
) -> tuple[Hashes, Times, Times]:
    """Of matches, from their probes and from the rows found: hash, youngest time, deadline."""
    count = len(of_probe)
    hash_of = np.empty(count, np.uint64)
    newest_of = np.empty(count, np.int64)
    deadline_of = np.empty(count, np.int64)
    for match in range(count):
        probe = of_probe[match]
        hash_of[match] = hashes[probe]
        newest_of[match] = max(newest[probe], times[match])
        deadline_of[match] = min(deadline[probe], deadlines[match])
    return hash_of, newest_of, deadline_of
