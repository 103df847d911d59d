from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from braid.cli.view import RunView
from braid.events import BatchDone, BatchRetried, Finished, Journal, Recovered, WorkerShare
from braid.runtime.run import Run

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
    null_key_rows=2,
    null_time_rows=3,
    output_rows=20,
    elapsed_ms=1234,
    watermark=None,
    workers=(SHARE,),
)


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a view without a terminal writes about events; it misses those `before` it."""

    def show(*events: Event, before: tuple[Event, ...] = ()) -> str:
        journal = Journal()
        run = Run(journal, close=lambda: None, clean_up=lambda: None)
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
    assert shown(before=(Recovered(5, 10, 100, None),)) == "continues after batch 5\n"


def test_the_end_needs_no_line_of_its_own(shown: Callable[..., str]) -> None:
    assert shown(Finished("input used up", 1, 2, 3, 4)) == ""
