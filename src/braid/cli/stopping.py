"""Ending a command by a signal: by Ctrl-C, or by the SIGTERM of whoever has started it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from braid.cli.view import RunView
from braid.events import Recovered
from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import NoReturn

    from braid.front.run import Run


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """A signal asked the command to end; no error, and not to be taken for one."""

    def __init__(self, number: int) -> None:
        """Keep the signal's number: the exit code tells it."""
        super().__init__(number)
        self.number = number
        self.is_told = False
        """Whether somebody has said so already."""


def heed_signals() -> None:
    """Have Ctrl-C and SIGTERM raise `Stopped` in the main thread."""
    _handle_signals(_stop)


def _handle_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped(number)


@contextmanager
def signals_held() -> Iterator[None]:
    """Heed a signal after the block, which starts Java: cut off there, Java would stay behind.

    A second one is heeded at once.
    """
    came: list[int] = []
    with os.fdopen(os.dup(2), "w") as screen:  # standard error may go elsewhere meanwhile

        def hold(number: int, frame: FrameType | None) -> None:
            if came:
                raise Stopped(number)
            came.append(number)
            screen.write("stopping once Spark has started; a second signal ends at once\n")
            screen.flush()

        _handle_signals(hold)
        try:
            yield
        except Exception:
            if not came:  # or else Java may have got the signal too
                raise
        finally:
            heed_signals()  # PySpark sets a handler that cancels the batch at hand
    if came:
        raise Stopped(came[0])


def leave(stopped: Stopped) -> NoReturn:
    """Say so, and exit with the signal's code; one that comes now does not wait for threads."""
    for number in _SIGNALS:
        signal.signal(number, lambda number, _: os._exit(128 + number))
    if not stopped.is_told:
        typer.echo("stopped", err=True)
    sys.exit(128 + stopped.number)


def see_through(running: Run, advice: str = "") -> None:
    """Show a run until it ends; a signal ends it after the batch at hand, a second one at once.

    The `advice` tells how a run that was stopped goes on.
    """
    try:
        with RunView(running):
            running.await_termination()
    except Stopped as stopped:
        typer.echo("stopping after the batch at hand; a second signal ends at once", err=True)
        try:
            running.stop()
        except BraidError as error:  # Spark may have got the signal too
            typer.echo(error.message, err=True)
        batch = _last_batch(running)
        when = "before the first batch" if batch is None else f"after batch {batch}"
        typer.echo(f"stopped {when}{advice}", err=True)
        stopped.is_told = True
        raise


def _last_batch(running: Run) -> int | None:
    """The last batch of a run, or of those before it from which it goes on."""
    recovered = (e["batch"] for e in running.events() if e["event"] == Recovered.name)
    batch = running.progress.batch
    return next(recovered, None) if batch is None else batch
