from __future__ import annotations

from dataclasses import replace

from braid.events import Held
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
    assert pacing.most_rows(0) is None
    assert not pacing.is_full(waiting(10**9))


def test_a_slow_worker_may_take_what_it_can_join_in_the_time_of_the_others() -> None:
    pacing = Pacing(1000)
    assert pacing.most_rows(0) is None, "nothing is known yet"
    list(pacing.after(COMMIT, [report(0, 900, 300), report(1, 900, 100), report(2, 900, 100)]))
    limits = [pacing.most_rows(worker) for worker in range(3)]
    assert limits == [360, 1080, 1080]


def test_a_batch_without_rows_teaches_nothing() -> None:
    pacing = Pacing(1000)
    list(pacing.after(COMMIT, [report(0, 900, 300), report(1, 900, 100), report(2, 900, 100)]))
    list(pacing.after(COMMIT, [report(worker, 0, 1) for worker in range(3)]))
    assert pacing.most_rows(0) == 360


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
