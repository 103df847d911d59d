from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

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
    Migrated,
    PairSelectivity,
    ProbeCount,
    Recovered,
    Spilled,
    Started,
    StateSize,
    StreamRate,
    ToldEvent,
    WorkerShare,
    instant,
)
from braid.model.errors import BraidError

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
FULL = replace(
    BATCH,
    states=(StateSize("a by k", 3, 4),),
    probes=(ProbeCount("a", "b by k", 5, 6),),
    rates=(StreamRate("a", None, "unknown"),),
    selectivities=(PairSelectivity("a", "b", 0.5, "exact"),),
)
EVENTS: list[Event] = [
    Started("SELECT", "(a b)", "/c", 2, 256, 0),
    Recovered(3, 100, 2000, None),
    FULL,
    BatchRetried(3, "executor lost"),
    Spilled(3, 0, 1, 2, 3, "memory", {"k": 30.0}),
    Migrated(3, "end", "moving-state", "(a b)", "(b a)", "asked for", {}, (0, 2)),
    ClockPutBack(3, "2099-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"),
    Displaced(3, "h/1", 2, "no space left"),
    Finished("input used up", 4, 80, 32, 900),
]


def test_a_batch_is_told_with_the_names_that_readers_rely_on() -> None:
    record = json.loads(json.dumps(ToldEvent(BATCH, instant(1_500_000), "r", 0).to_json()))
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
    record = ToldEvent(event, "now", "r", 7).to_json()
    assert list(record)[:5] == ["event", "at", "version", "run", "sequence"]
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


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_an_event_is_read_back_from_its_json(event: Event) -> None:
    told = ToldEvent(event, "2026-01-01T00:00:00.000Z", "run", 7)
    assert ToldEvent.from_json(json.loads(json.dumps(told.to_json()))) == told


def test_events_of_before_have_no_run_and_lack_what_is_new() -> None:
    record = ToldEvent(BATCH, "now").to_json()
    for name in ("version", "run", "sequence", "decided_ms", "bad_rows"):
        del record[name]
    assert ToldEvent.from_json(record) == ToldEvent(BATCH, "now")


@pytest.mark.parametrize("change", [{"version": 2}, {"event": "dreamt"}])
def test_events_of_a_newer_version_are_named(change: dict[str, Any]) -> None:
    record = ToldEvent(BATCH, "now").to_json() | change
    with pytest.raises(BraidError, match=str(next(iter(change.values())))) as refused:
        ToldEvent.from_json(record)
    assert "a newer one" in str(refused.value.hint)
    with pytest.raises(BraidError, match="cannot read an event 'batch'"):
        ToldEvent.from_json(ToldEvent(BATCH, "now").to_json() | {"unheard": 1})
