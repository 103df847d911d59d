from __future__ import annotations

import json
from dataclasses import replace

import pytest

from braid.events import Held
from braid.join.chores import Share
from braid.join.overflow import Loads
from braid.join.report import Report
from braid.runtime.pacing import Pacing
from braid.state.commit import Commit, first_commit
from braid.state.move import Waiting
from braid.state.runs import Section

COMMIT = first_commit(streams=2, spaces=1, states=2, rounds=1, groups=8, workers=3)


def report(worker: int, rows: int, busy_ms: int, held: int = 0) -> Report:
    return Report(
        worker=worker,
        round=0,
        host="",
        input_rows=rows,
        null_key_rows=0,
        null_time_rows=0,
        late_rows=0,
        joined_rows=rows,
        held_rows=held,
        output_rows=0,
        newest_us=(None, None),
        ladders={},
        generations={},
        overflowed={},
        waiting=(),
        parcels={},
        cleaned_rows=0,
        loads={},
        parts=(),
        late_parts=(),
        edges=(),
        busy_ms=busy_ms,
        rebuilt_runs=0,
    )


def waiting(rows: int) -> Commit:
    section = Section("file", 0, 1, "", rows)
    return replace(COMMIT, waiting=((), (Waiting(0, 0, 0, section, None),), ()))


def test_without_a_buffer_nobody_is_limited() -> None:
    pacing = Pacing(None)
    assert not list(pacing.after(COMMIT, [report(0, 10, 900), report(1, 10, 100)]))
    assert pacing.share(0) is None
    assert not pacing.is_full(waiting(10**9))


def learnt(*reports: Report, commit: Commit = COMMIT) -> list[float | None]:
    """What each worker may join after a batch."""
    pacing = Pacing(1000)
    list(pacing.after(commit, reports))
    return [share and round(share.most) for share in map(pacing.share, range(3))]


def test_a_slow_worker_may_take_what_it_can_join_in_the_time_of_the_others() -> None:
    assert Pacing(1000).share(0) is None, "nothing is known yet"
    slow = learnt(report(0, 900, 300), report(1, 900, 100), report(2, 900, 100))
    assert slow == [345, None, None]


def test_a_little_more_than_the_others_is_noise() -> None:
    assert learnt(report(0, 900, 130), report(1, 900, 100), report(2, 900, 100)) == [None] * 3


def test_who_has_rows_waiting_lets_go_a_little_more_than_usual() -> None:
    even = [report(worker, 900, 100) for worker in range(3)]
    assert learnt(*even, commit=waiting(70)) == [None, 1035, None]


def test_rows_of_a_group_that_makes_the_most_results_count_for_more() -> None:
    loads = Loads([0, 1, 2], [0] * 3, [0] * 3, [0] * 3, [440, 440, 20], [440, 440, 8000])
    burst = replace(report(0, 900, 500), loads={0: loads})
    pacing = Pacing(1000)
    list(pacing.after(COMMIT, [burst, report(1, 900, 100), report(2, 900, 100)]))
    share = pacing.share(0)
    assert share is not None
    assert share.most == pytest.approx(1.15 / 5 * (900 + 8880))
    assert dict(share.heavy[0]) == {2: 401.0}
    assert Share.from_json(json.loads(json.dumps(share.to_json()))) == share


def test_a_batch_without_rows_teaches_nothing() -> None:
    pacing = Pacing(1000)
    list(pacing.after(COMMIT, [report(0, 900, 300), report(1, 900, 100), report(2, 900, 100)]))
    share = pacing.share(0)
    assert share is not None
    list(pacing.after(COMMIT, [report(worker, 0, 1) for worker in range(3)]))
    assert pacing.share(0) is share


def test_who_holds_rows_says_so_and_so_does_who_has_let_all_of_them_go() -> None:
    pacing = Pacing(50)
    reports = [report(0, 900, 100), report(1, 900, 100, held=70), report(2, 900, 100)]
    (event,) = pacing.after(waiting(70), reports)
    assert isinstance(event, Held)
    assert (event.worker, event.rows, event.waiting_rows) == (1, 70, 70)
    assert pacing.is_full(waiting(70))
    assert not pacing.is_full(waiting(50))
    (event,) = pacing.after(COMMIT, [report(worker, 900, 100) for worker in range(3)])
    assert (event.worker, event.rows, event.waiting_rows) == (1, 0, 0)
    assert not list(pacing.after(COMMIT, [report(worker, 900, 100) for worker in range(3)]))
