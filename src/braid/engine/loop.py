"""Which batches a run has: those that bring rows, and those without that something asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from braid.engine.cluster import TryAgain
from braid.model.errors import BraidError, error_of
from braid.record.closing import is_due

if TYPE_CHECKING:
    from braid.engine.cluster import BatchInput
    from braid.engine.engine import Engine, Prepared


@dataclass(frozen=True, slots=True)
class BatchLoop:
    """Has the engine take one batch after the other; a feed brings the rows."""

    engine: Engine

    def on_rows(self, rows: BatchInput, position: dict[str, Any]) -> None:
        """Take a batch of rows."""
        self._make_room()
        self.fill_at_once()
        self.engine.take(self.engine.prepare_next(rows), position=position)

    def on_files(self, job: Prepared, position: dict[str, Any]) -> None:
        """Take a batch that was planned ahead."""
        self._make_room()
        self.fill_at_once()
        self.engine.take(job, position=position)

    def on_source_batch(self, rows: BatchInput, number: int) -> None:
        """Take a batch that Spark brings.

        Spark may bring the last one again, if it was committed before a crash; its rows are the
        same, for the checkpoint knows its offsets.
        """
        last = self.engine.commit.source_batch
        if not last <= number <= last + 1:
            raise BraidError(
                f"batch {number} came after batch {last}: the checkpoint's own part and "
                "Spark's part do not belong together",
                hint="restore the whole checkpoint folder from one copy",
            )
        if number > last:
            self._make_room()
            self.fill_at_once()
            self.engine.take(self.engine.prepare_next(rows), source_batch=number)
        # Of one that came again too: the crash may have been before what it closed was shown.
        self.close_moments()

    def _make_room(self) -> None:
        """Let rows that wait go first, if there are too many of them for others to come."""
        while self.engine.control.pacing.is_full(self.engine.commit):
            self.engine.beside.await_arrivals()
            self._take_nothing()

    def fill_at_once(self, job: Prepared | None = None) -> None:
        """A batch without rows that makes all states of a new plan, if they are so few.

        Its job may have been planned before.
        """
        if self.engine.control.migration.fills_at_once(self.engine.draft):
            self.engine.take(job or self.engine.prepare_next(None))

    @property
    def can_go_on(self) -> bool:
        """Whether rows wait for a batch alone: their groups have arrived, or never moved."""
        commit = self.engine.commit
        rests = not commit.moves
        return self.engine.beside.has_arrivals or (rests and any(commit.waiting))

    def take_waiting(self) -> None:
        """A batch without rows, if rows that wait can go on in it."""
        if self.can_go_on:
            self._take_nothing()

    def close_moments(self, *, at_end: bool = False) -> None:
        """A batch without rows, if it has something to show that waited for the watermark."""
        if is_due(self.engine.plan, self.engine.commit, at_end=at_end):
            self._take_nothing(at_end=at_end)

    def end(self) -> None:
        """Show all that is still to be shown when the input is used up."""
        self.engine.begin_to_end()
        self._settle_moves()
        if self.engine.control.adaptation.settings.cleanup != "never":
            self._clean_up()
        self.close_moments(at_end=True)

    def _settle_moves(self) -> None:
        """Batches without rows, until no group moves and no row waits."""
        engine = self.engine
        while engine.control.under_way(engine.commit) or any(engine.commit.waiting):
            engine.beside.await_arrivals()
            self._take_nothing()

    def _clean_up(self) -> None:
        """Batches without rows, until no result is owed."""
        while self.engine.control.adaptation.owing_bytes:
            self.engine.ask_for_cleanup()
            self._take_nothing()

    def _take_nothing(self, *, at_end: bool = False) -> None:
        self.engine.take(self.engine.prepare_next(None), at_end=at_end)

    def failure(self, fault: BaseException) -> Exception:
        """The error to show for what ended the run."""
        try:
            self.engine.cluster.check()
        except BraidError as lost:
            return lost
        return BraidError(str(fault)) if isinstance(fault, TryAgain) else error_of(fault)
