from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from braid.cli.view import RunView
from braid.events import (
    BatchDone,
    BatchRetried,
    CleanedUp,
    Finished,
    GapFound,
    Journal,
    Recovered,
    Relocated,
    RowsHeld,
    Spilled,
    WorkerShare,
)
from braid.front.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.events import Event

SHARE = WorkerShare(
    worker=0,
    groups=256,
    input_rows=1500,
    output_rows=20,
    state_rows=4000,
    memory_bytes=1_000_000,
    disk_bytes=500_000,
    busy_ms=30,
    rebuilt_runs=0,
    host="h/1",
)
BATCH = BatchDone(
    batch=7,
    input_rows=1500,
    late_rows=1,
    ahead_rows=0,
    null_key_rows=2,
    null_time_rows=3,
    output_rows=20,
    elapsed_ms=1234,
    watermark=None,
    workers=(SHARE,),
)


def silent_run(journal: Journal) -> Run:
    """A run of which there are events, and nothing else."""
    return Run(journal, close=lambda: None, clean_up=lambda: None, change_plan=lambda _: None)


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a view without a terminal writes about events; it misses those `before` it."""

    def show(*events: Event, before: tuple[Event, ...] = ()) -> str:
        journal = Journal()
        run = Run(
            journal, close=lambda: None, clean_up=lambda: None, change_plan=lambda _: None
        )
        for event in before:
            journal.add(event)
        with RunView(run):
            for event in events:
                journal.add(event)
        streams = capsys.readouterr()
        assert streams.out == "", "results may go there"
        return cast("str", streams.err)

    return show


def test_elsewhere_than_on_a_terminal_a_batch_is_one_line(shown: Callable[..., str]) -> None:
    assert shown(BATCH) == (
        "batch 7: 1,500 rows, 20 results, 6 dropped, state 4,000 rows (1.5 MB), "
        "watermark -, 1,234 ms\n"
    )


def test_a_batch_that_is_tried_again_is_told_with_its_reason_as_it_is(
    shown: Callable[..., str],
) -> None:
    reason = "Job aborted: [/tmp/x] lost [bold]all[/bold] of [executor 1]" + " and more" * 20
    assert shown(BatchRetried(3, reason)) == f"batch 3 is tried again: {reason}\n"


def test_a_run_that_continues_says_so_though_it_did_before_anyone_looked(
    shown: Callable[..., str],
) -> None:
    gap = GapFound(5, "out", 3, "the folder out ends with batch 3")
    told = shown(before=(Recovered(5, 10, 100, None), gap))
    assert told == "continues after batch 5\nthe folder out ends with batch 3\n"


def test_what_was_done_about_the_run_is_told_with_its_reason(
    shown: Callable[..., str],
) -> None:
    steps = [
        Relocated(7, step, 0, 1, 0, 5, 90, 2000, "uneven", {})
        for step in ("compute", "send", "receive", "reactivate")
    ]
    told = shown(
        Spilled(7, 0, 0, 3, 1000, "above its budget", {}),
        Spilled(7, 1, 0, 0, 0, "no space left in /mnt", {}),
        *steps,
        RowsHeld(7, 1, 40, 60, "more than its share", {}),
        CleanedUp(8, 0, 0, 3, 77, 10),
    )
    assert told.splitlines() == [
        "worker 0 pushed 3 groups (1.0 KB) to disk: above its budget",
        "worker 1 keeps in memory what should go to disk: no space left in /mnt",
        "5 groups (2.0 KB) go from worker 0 to worker 1: uneven",
        "5 groups (2.0 KB) have come from worker 0 to worker 1: uneven",
        "60 rows wait for worker 1: more than its share",
        "worker 0 cleaned up 3 groups: 77 results",
    ]


def test_on_a_terminal_a_bar_shows_how_far_a_clean_up_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    journal = Journal()
    with RunView(
        Run(journal, close=lambda: None, clean_up=lambda: None, change_plan=lambda _: None)
    ):
        for event in (BATCH, CleanedUp(8, 0, 0, 3, 7, 4000), CleanedUp(9, 0, 0, 3, 7, 1000)):
            journal.add(event)
    last = capsys.readouterr().err.rpartition("clean-up")[2]
    assert "1.0 KB on disk still owe results" in last
    assert last.count("━") + last.count("╸") + last.count("╺") == 24


def test_the_end_needs_no_line_of_its_own(shown: Callable[..., str]) -> None:
    assert shown(Finished("input used up", 1, 2, 3, 4)) == ""


class _Feed:
    """A feed that brings nothing, whether it waits for files or has none to wait for."""

    is_used_up = False

    def __init__(self, *, waits: bool) -> None:
        self.is_waiting = waits

    def wait(self, timeout_s: float | None) -> bool:
        return False

    def stop(self) -> None: ...


CLEARED = "\x1b[2K"


@pytest.fixture
def on_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What a view on a terminal writes about events of a run."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")

    def show(*events: Event, waits: bool) -> str:
        journal = Journal()
        run = silent_run(journal)
        run._feed = _Feed(waits=waits)  # without a thread that watches it
        with RunView(run):
            for event in events:
                journal.add(event)
        return capsys.readouterr().err

    return show


def test_a_run_without_a_batch_leaves_no_spinner_behind(
    on_terminal: Callable[..., str],
) -> None:
    _, words, after = on_terminal(waits=False).rpartition("the first batch takes longest")
    assert words
    assert CLEARED in after


def test_a_run_that_waits_for_files_says_so(on_terminal: Callable[..., str]) -> None:
    told = on_terminal(waits=True)
    assert "waits for files …" in told
    assert "the first batch" not in told
    assert CLEARED in told.rpartition("waits for files")[2]
    assert "waits for files …" in on_terminal(BATCH, waits=True), "also after a batch"
    assert "waits for files …" not in on_terminal(BATCH, waits=False)


def test_what_happens_before_the_first_batch_stays_on_the_screen(
    on_terminal: Callable[..., str],
) -> None:
    told = on_terminal(BatchRetried(0, "a lost executor"), waits=False)
    assert "batch 0 is tried again: a lost executor" in told.rpartition(CLEARED)[2]


def test_a_run_that_is_over_waits_for_nothing() -> None:
    run = silent_run(Journal())
    run._feed = _Feed(waits=True)
    assert run.status["message"] == "waits for files"
    run._end("stopped")
    assert not run.is_waiting
    assert run.status["message"] == "stopped"
