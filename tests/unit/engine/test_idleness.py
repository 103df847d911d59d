from __future__ import annotations

from braid.engine.idleness import Idleness


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def watched(timeout_us: int | None, streams: int = 2) -> tuple[Clock, Idleness]:
    clock = Clock()
    return clock, Idleness(streams, timeout_us, clock)


def test_without_a_timeout_no_stream_is_ever_idle() -> None:
    clock, idleness = watched(None)
    clock.now += 1e9
    assert idleness.after([[None, None]]) == frozenset()


def test_a_stream_is_idle_once_it_was_silent_for_longer_than_the_timeout() -> None:
    clock, idleness = watched(5_000_000)
    clock.now += 5
    assert idleness.after([[1, None]]) == frozenset()
    clock.now += 0.001
    assert idleness.after([[1, None]]) == {1}


def test_every_stream_has_its_full_time_from_the_start_of_the_run() -> None:
    clock, idleness = watched(5_000_000)
    clock.now += 4.9
    assert idleness.after([[None, None]]) == frozenset()


def test_a_row_wakes_a_stream_whichever_worker_it_came_to() -> None:
    clock, idleness = watched(5_000_000)
    clock.now += 10
    assert idleness.after([[None, None], [1, None]]) == {1}
    assert idleness.after([[None, 7], [None, None]]) == frozenset()
    clock.now += 10
    assert idleness.after([[None, None], [None, None]]) == {0, 1}


def test_a_timeout_of_nothing_makes_a_stream_idle_at_its_first_silent_moment() -> None:
    clock, idleness = watched(0, streams=1)
    assert idleness.after([[3]]) == frozenset()
    clock.now += 0.001
    assert idleness.after([[None]]) == {0}
