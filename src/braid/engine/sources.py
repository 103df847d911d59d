"""The streams of a query: their columns, and the cluster and the feed that can read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from braid.cql.event_time import EventTime
    from braid.cql.types import Typing
    from braid.engine.clock import Shown
    from braid.engine.cluster import Cluster
    from braid.engine.feed import Feed
    from braid.engine.folder import FileStream
    from braid.engine.loop import BatchLoop
    from braid.model.query import Query, TimeNames
    from braid.optimize.cost_model import IndexProbes
    from braid.plan.join_plan import JoinPlan
    from braid.record.checkpoint import Checkpoint
    from braid.record.names import NameList


@dataclass(frozen=True, slots=True)
class Reading:
    """How streams are to be read: to their end, to what is there now, or on and on.

    `names` are the files that have been read, if streams are folders.
    """

    names: NameList | None = None
    available_now: bool = False
    follows: bool = False
    interval_s: float = 0.0


class Sources(Protocol):
    """The streams of a query, by name, once their columns are known."""

    @property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """Their columns, with computed event times."""

    @property
    def typing(self) -> Typing:
        """The types of expressions over them."""

    @property
    def event_times(self) -> Mapping[str, EventTime]:
        """Their event times."""

    def describe_times(self, names: TimeNames) -> str:
        """The event times of a query as a checkpoint knows them.

        That is with the zone, if they depend on it.
        """

    @property
    def zone(self) -> str:
        """The name of the time zone that expressions go by."""

    def clock(self, *, is_wall: bool) -> Shown:
        """A clock like those that event times come from."""

    def now_us(self) -> int:
        """The time by the driver's clock."""

    @property
    def cores(self) -> int:
        """How many workers there are by default."""

    def costs(self, *, several_keys: bool) -> IndexProbes:
        """What the operations of a join cost on this machine."""

    def check(self, query: Query) -> None:
        """Refuse a query that cannot be run over these streams."""

    def check_start(self) -> None:
        """Raise an error if a run cannot begin any more."""

    def check_name(self, name: str) -> None:
        """Refuse the name of a run that is taken."""

    def folders(self, places: Collection[Path]) -> Iterable[tuple[str, FileStream]]:
        """The local folders that they read, by stream; some may be at these places."""

    def as_known(self, known: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What is known of folders, by stream, if a checkpoint knows them otherwise."""

    def supply(self, checkpoint: Checkpoint) -> Supply:
        """The same, for a run on a checkpoint."""


class Supply(Protocol):
    """The streams of a run: the cluster that can read them, and the feed that brings them."""

    def check_offsets(self) -> None:
        """Raise an error if the sources' part of the checkpoint does not belong to ours."""

    def note_columns(self) -> None:
        """Have the checkpoint remember what a later run cannot find out."""

    def read_files(self, position: dict[str, Any] | None) -> NameList | None:
        """The files that have been read, if streams are folders."""

    def results(self, folder: Path) -> Any:
        """Results that workers have staged in a folder, as callbacks get them."""

    def cluster(
        self,
        plan: JoinPlan,
        *,
        workers: int,
        name: str,
        memory_bytes: int | None,
        keeps_bad: bool,
    ) -> Cluster:
        """Workers for the run."""

    def feed(self, loop: BatchLoop, cluster: Any, reading: Reading) -> Feed:
        """Begin to bring batches, for a cluster of these streams."""
