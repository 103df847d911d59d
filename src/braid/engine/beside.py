"""What a cluster does beside batches: it takes groups to other workers, and samples rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from braid.control.relocation import Arrival

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from braid.engine.cluster import BatchInput, Cluster, Pair
    from braid.record.commit import Commit
    from braid.record.move import Move, MoveKey
    from braid.state.runs import SortedRun

    Shipping = Future[Mapping[int, SortedRun]]


@dataclass(slots=True)
class Beside:
    """Futures of a cluster; `on_arrival` is told, in another thread, when groups are there."""

    cluster: Cluster
    on_arrival: Callable[[], None] = lambda: None
    _shipping: dict[MoveKey, Shipping] = field(default_factory=dict, init=False)
    _sampling: Future[Mapping[Pair, float]] | None = field(default=None, init=False)

    def ship(self, commit: Commit, moves: Sequence[Move]) -> None:
        """Have groups that were taken out brought to their receivers."""
        for move in moves:
            future = self._shipping[move.key] = self.cluster.ship(commit, move)
            future.add_done_callback(lambda _: self.on_arrival())

    @property
    def has_arrivals(self) -> bool:
        """Whether groups have arrived that nobody knows of."""
        return any(future.done() for future in self._shipping.values())

    def arrivals(self) -> dict[MoveKey, Arrival]:
        """What has come of moves since this was asked last."""
        done = {key: each for key, each in self._shipping.items() if each.done()}
        for key in done:
            del self._shipping[key]
        return {key: _arrival(each) for key, each in done.items()}

    def await_arrivals(self) -> None:
        """Wait until all that was sent has arrived, or cannot."""
        for future in self._shipping.values():
            future.exception()

    def sample(self, rows: BatchInput, count: int, pairs: Sequence[Pair]) -> None:
        """Have pairs of streams looked for among the rows of a batch."""
        self._sampling = self.cluster.sample(rows, count, pairs)

    @property
    def is_sampling(self) -> bool:
        """Whether nothing has come yet of the last sample."""
        return self._sampling is not None

    def sample_found(self) -> Mapping[Pair, float] | None:
        """What a sample has found; one that fails is none, for batches say so themselves."""
        if self._sampling is None or not self._sampling.done():
            return None
        found, self._sampling = self._sampling, None
        return None if found.exception() is not None else found.result()


def _arrival(future: Shipping) -> Arrival:
    """What has arrived, or nothing and why."""
    try:
        return Arrival(future.result())
    except Exception as fault:
        return Arrival({}, f"not sent, and made from the log instead: {fault}")
