"""Partition groups: the arithmetic of key hashes and of ranges of groups, all of it.

A group is a range of the hashes, so rows sorted by hash are sorted by group. Which worker has
which groups is a matter of `braid.plan.placement`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Hashes = NDArray[np.uint64]

Ranges = tuple[tuple[int, int], ...]
"""Half-open ranges of groups."""


def group_of(hashes: Hashes, groups: int) -> NDArray[np.int64]:
    """The partition group of each key hash: equal ranges of the hash space, in order.

    Groups grow with the hash, so rows sorted by hash are sorted by group, and a group is a
    slice of a run. The split computes the same in Catalyst.
    """
    return ((hashes >> np.uint64(32)) * np.uint64(groups) >> np.uint64(32)).astype(np.int64)


def group_bounds(group: int, groups: int) -> tuple[int, int]:
    """The half-open range of key hashes that make up one group."""
    return -(-(group << 32) // groups) << 32, -(-((group + 1) << 32) // groups) << 32


def group_counts(hashes: Hashes, groups: int) -> NDArray[np.int64]:
    """How many of some sorted key hashes each group has."""
    places = np.searchsorted(hashes, _group_starts(groups))
    return np.diff(places, append=len(hashes))


@cache
def _group_starts(groups: int) -> Hashes:
    """The smallest key hash of each group."""
    return np.array([group_bounds(group, groups)[0] for group in range(groups)], np.uint64)


def ranges_of(groups: NDArray[np.bool_]) -> Ranges:
    """Half-open ranges of the groups that are marked.

    >>> ranges_of(np.array([True, True, False, True]))
    ((0, 2), (3, 4))
    """
    edges = np.flatnonzero(np.diff(groups, prepend=False, append=False)).tolist()
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def ranges_with(groups: Sequence[int]) -> Ranges:
    """Half-open ranges of some groups, given by their numbers.

    >>> ranges_with([3, 0, 1])
    ((0, 2), (3, 4))
    """
    marks = np.zeros(max(groups) + 1, bool)
    marks[list(groups)] = True
    return ranges_of(marks)


def marked(ranges: Iterable[tuple[int, int]], groups: int) -> NDArray[np.bool_]:
    """The inverse of `ranges_of`, of so many groups.

    >>> marked([(0, 2), (3, 4)], 4)
    array([ True,  True, False,  True])
    """
    marks = np.zeros(groups, bool)
    for first, end in ranges:
        marks[first:end] = True
    return marks
