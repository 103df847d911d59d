"""Where results go. A sink takes each batch exactly once, by its number.

Workers write results as Parquet files below a *staging* folder. Once the batch is committed,
the driver publishes the folder. Publishing may be asked for twice, after a crash; the second
time must change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.events import GapFound
    from braid.record.commit import ResultFile

STAGING = ".staging"
"""The folder inside an output that results are staged in."""


@dataclass(frozen=True, slots=True)
class LastBatch:
    """A checkpoint's last batch: the `parts` that were `staged`, by a sink of some kind."""

    number: int
    staged: str = ""
    parts: tuple[ResultFile, ...] = ()
    is_published: bool = False

    @property
    def output(self) -> Path | None:
        """The folder for results that the batch was staged in, if it was one."""
        staging = Path(self.staged).parent
        return staging.parent if staging.name == STAGING else None


class Sink(Protocol):
    """Takes results, batch by batch."""

    def open(self, checkpoint: Path, checkpoint_id: str, last: LastBatch) -> GapFound | None:
        """Get ready for a run on this checkpoint; return what is missing of earlier results.

        Refuse a place that is another's, that has results of later batches or other results of
        the last one, or that has none at all, if they were put into such a place.
        """

    def stage(self, batch: int) -> Path:
        """A new folder for workers to write a batch's parts into."""

    def publish(self, batch: int, staged: Path, parts: Sequence[ResultFile]) -> None:
        """Show a committed batch's parts to the world; at least once, and idempotent."""

    def clear(self) -> None:
        """Remove all that is staged."""
