"""What the command says when a signal ends it."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest

from braid.cli import app, main
from braid.cli.stopping import Stopped, see_through
from braid.events import Journal, Recovered
from braid.front.run import Run

if TYPE_CHECKING:
    from braid.events import Event


class _Interrupted:
    """A feed without batches; whoever waits for it in the main thread gets a signal."""

    is_used_up = is_waiting = False

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def wait(self, timeout_s: float | None) -> bool:
        if threading.current_thread() is threading.main_thread() and not self._stopped.is_set():
            raise Stopped(signal.SIGTERM)
        return self._stopped.wait(timeout_s)

    def stop(self) -> None:
        self._stopped.set()


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ((), "stopped before the first batch; go on"),
        ((Recovered(9, 10, 100, None),), "stopped after batch 9; go on"),
    ],
)
def test_a_run_that_stops_without_a_batch_names_the_last_before(
    before: tuple[Event, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal()
    for event in before:
        journal.add(event)
    run = Run(journal, close=lambda: None, clean_up=lambda: None, change_plan=lambda *_: None)
    run.follow(_Interrupted())
    with pytest.raises(Stopped) as stopped:
        see_through(run, "; go on")
    assert stopped.value.is_told
    assert capsys.readouterr().err.splitlines()[-1] == told


@pytest.mark.parametrize("is_told", [False, True])
def test_a_signal_before_a_run_is_told_in_a_word(
    is_told: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start() -> None:
        stopped = Stopped(signal.SIGINT)
        stopped.is_told = is_told
        raise stopped

    monkeypatch.setattr(app, "app", start)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 128 + signal.SIGINT
    assert capsys.readouterr().err == ("" if is_told else "stopped\n")
