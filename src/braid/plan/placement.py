"""Placements: on which worker a row is stored, and which workers a probe visits.

`store(x)` and `visit(y)` have exactly one worker in common for every pair of rows that may
join. Every pair is decided there, so it is decided once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from braid.state.groups import group_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from braid.state.groups import Hashes

    Workers = NDArray[np.int64]
    """A worker for each row."""


class Placement(Protocol):
    """Where rows meet; only its kind is part of a state's name, so that it may change.

    A row is known by the hash of its key.
    """

    kind: ClassVar[str]

    def store(self, hashes: Hashes) -> Workers:
        """The worker that each row is stored on."""

    def visit(self, hashes: Hashes) -> Workers:
        """The worker whose rows each row has to meet."""


@dataclass(frozen=True, slots=True)
class ByHash:
    """Rows with the same key meet on the worker that has the group of the key's hash."""

    kind: ClassVar[str] = "hash"

    owners: tuple[int, ...]  # by group

    @classmethod
    def equal_shares(cls, groups: int, workers: int) -> ByHash:
        """Each worker has a contiguous range of the groups."""
        return cls(tuple(group * workers // groups for group in range(groups)))

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.owners)

    def store(self, hashes: Hashes) -> Workers:
        """The owner of each row's group."""
        owners: Workers = np.array(self.owners)[group_of(hashes, self.groups)]
        return owners

    def visit(self, hashes: Hashes) -> Workers:
        """The same: all rows of a key are there."""
        return self.store(hashes)

    def of(self, *workers: int) -> NDArray[np.bool_]:
        """The groups that some workers have."""
        return np.isin(self.owners, workers)

    def given(self, groups: NDArray[np.bool_], worker: int) -> ByHash:
        """With some groups given to a worker."""
        return ByHash(tuple(np.where(groups, worker, self.owners).tolist()))
