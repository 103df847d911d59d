from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.events import (
    BatchDone,
    BatchRetried,
    ClockPutBack,
    Displaced,
    Event,
    Finished,
    Recovered,
    Started,
    WorkerShare,
    instant,
)
from braid.events.facts import to_json

SHARE = WorkerShare(
    worker=1,
    groups=128,
    input_rows=10,
    output_rows=4,
    state_rows=30,
    memory_bytes=500,
    disk_bytes=7,
    busy_ms=12,
    rebuilt_runs=0,
    host="h/1",
)
BATCH = BatchDone(
    batch=3,
    input_rows=20,
    late_rows=1,
    ahead_rows=0,
    null_key_rows=2,
    null_time_rows=3,
    output_rows=8,
    elapsed_ms=40,
    watermark="2024-01-01T00:00:00.000Z",
    workers=(SHARE, SHARE),
)
EVENTS: list[Event] = [
    Started("SELECT", "(a b)", "/c", 2, 256, 0),
    Recovered(3, 100, 2000, None),
    BATCH,
    BatchRetried(3, "executor lost"),
    ClockPutBack(3, "2099-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"),
    Displaced(3, "h/1", 2, "no space left"),
    Finished("input used up", 4, 80, 32, 900),
]


def test_a_batch_is_told_with_the_names_that_readers_rely_on() -> None:
    record = json.loads(json.dumps(to_json(BATCH, 1_500_000)))
    assert record["event"] == "batch"
    assert record["at"] == "1970-01-01T00:00:01.500Z"
    known = ["batch", "input_rows", "late_rows", "output_rows", "elapsed_ms", "watermark"]
    assert {name: record[name] for name in known} == {
        "batch": 3,
        "input_rows": 20,
        "late_rows": 1,
        "output_rows": 8,
        "elapsed_ms": 40,
        "watermark": "2024-01-01T00:00:00.000Z",
    }
    assert len(record["workers"]) == 2
    assert (
        record["workers"][0].items()
        >= {
            "worker": 1,
            "groups": 128,
            "input_rows": 10,
            "output_rows": 4,
            "state_rows": 30,
            "memory_bytes": 500,
            "disk_bytes": 7,
            "busy_ms": 12,
        }.items()
    )


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_an_event_is_a_flat_json_object_that_opens_with_its_name_and_time(event: Event) -> None:
    record = to_json(event, 0)
    assert list(record)[:2] == ["event", "at"]
    assert record["event"] == event.name
    assert json.loads(json.dumps(record)).keys() == record.keys()


def test_event_names_differ() -> None:
    assert len({event.name for event in EVENTS}) == len(EVENTS)


def test_a_batchs_state_is_that_of_all_workers() -> None:
    assert (BATCH.state_rows, BATCH.state_bytes) == (60, 1014)


@pytest.mark.parametrize(
    ("moment_us", "text"),
    [
        (None, None),
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_704_067_200_123_456, "2024-01-01T00:00:00.123Z"),
        (-(2**57) - 2**56, "0001-01-01T00:00:00.000Z"),
    ],
)
def test_an_instant_is_utc_with_milliseconds(moment_us: int | None, text: str | None) -> None:
    assert instant(moment_us) == text


@settings(deadline=None)
@given(st.integers(-(2**57) - 2**56, 2**57))
def test_every_watermark_that_a_run_may_reach_can_be_told(moment_us: int) -> None:
    assert str(instant(moment_us)).endswith("Z")
