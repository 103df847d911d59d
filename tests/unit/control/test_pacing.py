from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from braid.control.decider import BatchSeen
from braid.control.pacing import Pacing
from braid.events import RowsHeld
from braid.record.commit import Commit, first_commit
from braid.record.move import Waiting
from braid.record.report import Loads, Report
from braid.record.worker_orders import Share
from braid.state.runs import Section

if TYPE_CHECKING:
    from braid.plan.join_plan import JoinPlan

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
        ahead_rows=0,
        joined_rows=rows,
        held_rows=held,
        output_rows=0,
        newest_us=(None, None),
        ladders={},
        generations={},
        overflowed={},
        waiting=(),
        parcels={},
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


def learn(
    pacing: Pacing, *reports: Report, commit: Commit = COMMIT
) -> tuple[Pacing, list[Any]]:
    """A batch of 1,000 ms, most of which no worker is busy in."""
    seen = BatchSeen(COMMIT, commit, cast("JoinPlan", None), reports, 1000, 0)
    decided = pacing.observe(seen)
    return decided.next, list(decided.events)


def shares_after(*reports: Report, commit: Commit = COMMIT) -> list[float | None]:
    """What each worker may join after a batch."""
    pacing, _ = learn(Pacing(1000), *reports, commit=commit)
    return [share and round(share.most) for share in map(pacing.share, range(3))]


def test_without_a_buffer_nobody_is_limited() -> None:
    pacing, events = learn(Pacing(None), report(0, 10, 900), report(1, 10, 100))
    assert not events
    assert pacing.share(0) is None
    assert not pacing.is_full(waiting(10**9))


def test_a_late_worker_may_take_what_makes_a_batch_a_little_longer() -> None:
    assert Pacing(1000).share(0) is None, "nothing is known yet"
    slow = shares_after(report(0, 900, 500), report(1, 900, 100), report(2, 900, 100))
    # Without the 400 ms of the late one, a batch takes 600: 100 ms and 15 % of those.
    # Receiving a row counts half of joining it.
    assert slow == [round(1350 * 190 / 500), None, None]


def test_what_makes_a_batch_hardly_longer_is_noise() -> None:
    even = report(1, 900, 100), report(2, 900, 100)
    assert shares_after(report(0, 900, 210), *even) == [None] * 3


def test_who_has_rows_waiting_may_take_as_much_as_makes_a_batch_a_little_longer() -> None:
    even = [report(worker, 900, 100) for worker in range(3)]
    assert shares_after(*even, commit=waiting(70)) == [None, round(1350 * 2.5), None]


def test_rows_of_a_group_that_makes_the_most_results_count_for_more() -> None:
    loads = Loads([0, 1, 2], [0] * 3, [0] * 3, [0] * 3, [440, 440, 20], [440, 440, 8000])
    burst = replace(report(0, 900, 500), loads={0: loads})
    pacing, _ = learn(Pacing(1000), burst, report(1, 900, 100), report(2, 900, 100))
    share = pacing.share(0)
    assert share is not None
    assert share.most == pytest.approx(190 / 500 * (1350 + 0.2 * 8880))
    assert share.usual == pytest.approx(1.2), "the burst is not what is usual"
    assert dict(share.heavy[0]) == {2: 81.0}
    assert Share.from_json(json.loads(json.dumps(share.to_json()))) == share


def test_a_batch_without_new_rows_does_not_say_what_is_usual() -> None:
    pacing, _ = learn(
        Pacing(1000), report(0, 900, 500), report(1, 900, 100), report(2, 900, 100)
    )
    drained = replace(report(1, 900, 380), input_rows=0)
    pacing, _ = learn(pacing, drained, report(0, 0, 1), report(2, 0, 1), commit=waiting(70))
    share = pacing.share(1)
    assert share is not None
    assert share.most == pytest.approx(900 * 190 / 380), "as long as a batch with rows may take"


def test_a_burst_that_is_over_is_joined_while_all_else_goes_on() -> None:
    """A worker of even speed: what waits gets less with every batch, and nothing else waits."""
    pacing, waits, taken = Pacing(10**9), 3000.0, []
    even = report(0, 900, 100), report(2, 900, 100)
    pacing, _ = learn(pacing, report(1, 3900, 500), *even, commit=waiting(3000))
    while waits >= 1:
        share = pacing.share(1)
        assert share is not None
        joined = min(share.for_joining(900), 900 + waits)
        waits -= joined - 900
        taken.append(joined)
        busy = report(1, int(joined), int(33 + joined / 900 * 67))
        busy = replace(busy, input_rows=900)
        pacing, _ = learn(pacing, busy, *even, commit=waiting(int(waits)))
    assert min(taken) >= 900
    assert len(taken) < 5


def test_who_holds_rows_says_so_and_so_does_who_has_let_all_of_them_go() -> None:
    pacing = Pacing(50)
    calm = [report(worker, 900, 100) for worker in range(3)]
    held = [calm[0], report(1, 900, 100, held=70), calm[2]]
    pacing, (event,) = learn(pacing, *held, commit=waiting(70))
    assert isinstance(event, RowsHeld)
    assert (event.worker, event.rows, event.waiting_rows) == (1, 70, 70)
    assert pacing.is_full(waiting(70))
    assert not pacing.is_full(waiting(50))
    pacing, (event,) = learn(pacing, *calm)
    assert (event.worker, event.rows, event.waiting_rows) == (1, 0, 0)
    assert learn(pacing, *calm)[1] == []
