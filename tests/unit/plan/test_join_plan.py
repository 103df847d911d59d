from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.record.commit import first_commit, newer
from braid.record.next_commit import next_commit
from braid.record.report import Edge, Report
from braid.state.horizon import NO_HORIZON, Horizon
from tests.unit.state.making import equal_join

LAW = settings(deadline=None)  # the first call may compile

times = st.integers(-(2**57), 2**57)
seen = st.none() | times


def test_the_watermark_is_the_slowest_streams_newest_row_less_the_lateness() -> None:
    plan = equal_join(3, 100, lateness_us=10)
    assert plan.watermark_us([50, 40, 70], None) == 30


def test_a_stream_without_a_row_holds_the_watermark_back() -> None:
    plan = equal_join(2, 100)
    assert plan.watermark_us([50, None], None) is None
    assert plan.watermark_us([50, None], 20) == 20


@LAW
@given(st.lists(seen, min_size=2, max_size=2), seen)
def test_the_watermark_never_falls(newest: list[int | None], so_far: int | None) -> None:
    reached = equal_join(2, 100, lateness_us=5).watermark_us(newest, so_far)
    assert so_far is None or (reached is not None and reached >= so_far)


def test_the_horizon_is_a_window_behind_the_watermark() -> None:
    plan = equal_join(2, 100)
    state = plan.rounds.states[0]
    assert plan.horizon(state, 1000) == Horizon(900, 1000)
    assert plan.horizon(state, None) == NO_HORIZON


@LAW
@given(seen, seen)
def test_newer_is_the_later_of_the_times_there_are(a: int | None, b: int | None) -> None:
    assert newer(a, b) == max((t for t in (a, b) if t is not None), default=None)


def test_results_have_the_types_of_the_columns_they_come_from() -> None:
    schema = equal_join(2, 100).result_schema
    assert schema.names == ["v0", "v1", "t0", "t1"]
    assert [schema.field(n).type for n in ("v0", "t1")] == [
        pa.int64(),
        pa.timestamp("us", "UTC"),
    ]


def report(worker: int, *newest_us: int | None) -> Report:
    counts = dict.fromkeys(
        ["input_rows", "null_key_rows", "null_time_rows", "late_rows", "output_rows"], 0
    )
    return Report(
        worker=worker,
        round=0,
        host="",
        **counts,
        newest_us=newest_us,
        ladders={0: (), 1: ()},
        generations={},
        overflowed={},
        joined_rows=0,
        held_rows=0,
        waiting=(),
        parcels={},
        loads={},
        ahead_rows=0,
        parts=(),
        late_parts=(),
        edges=(Edge(0, 1, 0, 7, 5),),
        busy_ms=0,
        rebuilt_runs=0,
    )


def test_a_commit_takes_the_newest_rows_of_all_workers_whatever_their_order() -> None:
    plan = equal_join(2, 100)
    reports = [report(1, 50, None), report(0, 40, 30)]
    commit = next_commit(plan, first_commit(2, 1, 2, 1, 16, 2), reports)
    assert (commit.batch, commit.newest_us, commit.watermark_us) == (0, (50, 30), 30)


@pytest.mark.parametrize(
    ("idle", "watermark"), [((), 30), ((1,), 50), ((0,), 30), ((0, 1), None)]
)
def test_an_idle_stream_does_not_hold_the_watermark_back(
    idle: tuple[int, ...], watermark: int | None
) -> None:
    plan = equal_join(2, 100)
    commit = next_commit(plan, first_commit(2, 1, 2, 1, 16, 1), [report(0, 50, 30)], idle=idle)
    assert commit.watermark_us == watermark


def test_a_report_survives_json() -> None:
    original = report(3, 5, None)
    assert Report.from_json(original.to_json()) == original
