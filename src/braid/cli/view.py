"""What a person sees of a run: a live table on a terminal, a line a batch elsewhere.

Drawn from events alone.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from braid.cli.news import bytes_text, sentence_of
from braid.events import BatchDone, CleanedUp, Event, GapFound, Recovered

if TYPE_CHECKING:
    from types import TracebackType

    from braid.front.run import Run

_BAR_WIDTH = 24
_LATEST = 4  # sentences that stay on the screen
_FOR_FILES = "waits for files …"
_AT_FIRST = "the first batch takes longest, as Java compiles what it runs …"


class RunView:
    """Follows a run; use as a context manager around waiting for it."""

    def __init__(self, run: Run) -> None:
        """Show what the run has done already, and what it does from now on."""
        self._run = run
        self._console = Console(stderr=True, highlight=False)
        self._live = (
            Live(_Wait(run, _AT_FIRST), console=self._console, refresh_per_second=4)
            if self._console.is_terminal
            else None
        )
        self._began = time.monotonic()
        self._last: BatchDone | None = None
        self._news: deque[str] = deque(maxlen=_LATEST)
        self._owed = _Owed()
        for record in run.events():
            if record["event"] == Recovered.name:  # before anyone could listen
                self._say(f"continues after batch {record['batch']}")
            if record["event"] == GapFound.name:
                self._say(record["reason"])
        run.listen(self._on_event)

    def __enter__(self) -> RunView:
        """Start drawing."""
        if self._live is not None:
            self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last picture standing; without a batch, only what else has happened."""
        if self._live is None:
            return
        if self._last is None:
            self._live.update(Text("\n".join(self._news)))
            self._live.transient = not self._news
        self._live.stop()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, BatchDone):
            self._last = event
            if self._live is None:
                self._say(self._line(event))
        if isinstance(event, CleanedUp):
            self._owed.after(event)
        sentence = sentence_of(event)
        if sentence is not None:
            self._news.append(sentence)
            if self._live is None:
                self._say(sentence)
        if self._live is not None and self._last is not None:
            self._live.update(self._picture(self._last))

    def _say(self, line: str) -> None:
        """Write a line as it is, brackets and colons included."""
        self._console.print(line, soft_wrap=True, markup=False, emoji=False)

    def _line(self, done: BatchDone) -> str:
        return (
            f"batch {done.batch}: {done.input_rows:,} rows, {done.output_rows:,} results, "
            f"{done.dropped_rows:,} dropped, state {done.state_rows:,} rows "
            f"({bytes_text(done.state_bytes)}), watermark {done.watermark or '-'}, "
            f"{done.elapsed_ms:,} ms"
        )

    def _picture(self, done: BatchDone) -> Group:
        so_far = self._run.progress
        per_second = so_far.input_rows / max(1e-9, time.monotonic() - self._began)
        head = Table.grid(padding=(0, 3))
        for _ in range(6):
            head.add_column(justify="right")
        head.add_row("batch", "rows", "rows/s", "results", "late", "state")
        head.add_row(
            f"[bold]{done.batch:,}",
            f"[bold]{so_far.input_rows:,}",
            f"[bold]{per_second:,.0f}",
            f"[bold]{so_far.output_rows:,}",
            f"[bold]{so_far.late_rows:,}",
            f"[bold]{done.state_rows:,} ({bytes_text(done.state_bytes)})",
        )
        news = Text("\n".join(self._news), style="dim")
        watermark = Text(f"watermark {done.watermark or '-'}")
        parts = head, watermark, _workers(done), *self._owed.bar(), news, _Wait(self._run)
        return Group(*parts)


class _Wait:
    """A spinner while a run waits for files, or, as long as it does not, for something else."""

    def __init__(self, run: Run, otherwise: str = "") -> None:
        self._run, self._otherwise = run, otherwise
        self._spinner = Spinner("dots")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        words = _FOR_FILES if self._run.is_waiting else self._otherwise
        if words:
            self._spinner.update(text=words)
            yield self._spinner


class _Owed:
    """How far a clean-up has come: what groups on disk owe, of the most that they owed."""

    def __init__(self) -> None:
        self._bytes: dict[tuple[int, int], int] = {}
        self._most = 0

    def after(self, event: CleanedUp) -> None:
        self._bytes[event.worker, event.space] = event.owing_bytes
        left = sum(self._bytes.values())
        self._most = max(self._most, left) if left else 0

    def bar(self) -> list[RenderableType]:
        """Nothing, where nothing is owed."""
        if not self._most:
            return []
        left = sum(self._bytes.values())
        line = Table.grid(padding=(0, 2))
        done = ProgressBar(total=self._most, completed=self._most - left, width=_BAR_WIDTH)
        line.add_row("clean-up", done, f"{bytes_text(left)} on disk still owe results")
        return [line]


def _workers(done: BatchDone) -> Table:
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for name in ("worker", "groups", "rows", "results", "state rows", "memory", "disk", "busy"):
        table.add_column(name, justify="right")
    table.add_column("")
    most = max((share.busy_ms for share in done.workers), default=0) or 1
    for share in done.workers:
        bar = "█" * max(1, round(_BAR_WIDTH * share.busy_ms / most))
        table.add_row(
            str(share.worker),
            f"{share.groups:,}",
            f"{share.input_rows:,}",
            f"{share.output_rows:,}",
            f"{share.state_rows:,}",
            bytes_text(share.memory_bytes),
            bytes_text(share.disk_bytes),
            f"{share.busy_ms:,} ms",
            Text(bar, style="cyan"),
        )
    return table
