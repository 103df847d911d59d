from __future__ import annotations

from typing import Any

from braid.experiment.outcome import Outcome, PlanChange

STARTED = {"event": "started"}


def batch(number: int, rows: int, results: int, *memory: int) -> dict[str, Any]:
    workers = [
        {"worker": worker, "memory_bytes": size, "disk_bytes": 1, "busy_ms": 10 * (worker + 1)}
        for worker, size in enumerate(memory)
    ]
    states = [{"state": "a by x", "rows": rows}, {"state": "(a b) by y", "rows": 2 * results}]
    counts = {"batch": number, "input_rows": rows, "output_rows": results}
    return {"event": "batch", "workers": workers, "states": states, **counts}


def migrate(number: int, step: str, new: str = "(a (b c))") -> dict[str, Any]:
    way = "parallel-track"
    return {"event": "migrate", "batch": number, "step": step, "way": way, "new": new}


def cleanup(number: int, worker: int, results: int) -> dict[str, Any]:
    return {"event": "cleanup", "batch": number, "worker": worker, "results": results}


def test_curves_end_with_the_input_and_what_follows_is_the_clean_up() -> None:
    outcome = Outcome.of(
        [
            STARTED,
            batch(0, 100, 5, 10, 20),
            {"event": "spill", "groups": 1},
            {"event": "relocate", "step": "quiesce", "rows": 7},
            batch(1, 0, 1, 12, 20),  # without rows, before the end
            cleanup(2, 0, 3),  # on the way
            batch(2, 50, 9, 30, 5),
            {"event": "relocate", "step": "reactivate", "rows": 0},
            cleanup(3, 1, 4),
            batch(3, 0, 4, 30, 5),
            cleanup(4, 1, 2),
            batch(4, 0, 2, 30, 5),
        ],
        taken_ms=[100, 800],
    )
    assert outcome.input_rows == (100, 150)
    assert outcome.output_rows == (5, 15), "with what came between"
    assert outcome.memory_bytes == ((10, 20), (30, 5))
    assert outcome.state_bytes == (32, 37), "with what is on disk"
    assert outcome.state_rows == (110, 68)
    assert outcome.joined_rows == (10, 18)
    assert outcome.taken_ms == (100, 800), "of batches with rows"
    assert (outcome.spills, outcome.relocations, outcome.moved_rows) == (1, 1, 7)
    assert outcome.cleanup_rows == (0, 6)
    assert outcome.cleanup_ms == (20, 40)
    assert (outcome.run_time_rows, outcome.all_cleanup_rows, outcome.all_rows) == (15, 6, 21)
    assert outcome.most_bytes == 30


def test_changes_of_plan_are_spans_of_batches_with_rows() -> None:
    events = [STARTED, *(batch(number, 10, number % 4, 0) for number in range(8))]
    events += [batch(8, 0, 3, 0), batch(9, 10, 0, 0)]
    events += [migrate(2, "start"), migrate(3, "fill"), migrate(5, "end")]
    events += [migrate(6, "refused"), migrate(7, "start", "(a b c)")]
    outcome = Outcome.of(events, taken_ms=[100] * 9)
    assert outcome.batch_rows == (0, 1, 2, 3, 0, 1, 2, 3, 3)
    assert outcome.changes == (
        PlanChange("parallel-track", "(a (b c))", 3, 6),
        PlanChange("parallel-track", "(a b c)", 8, 9),
    ), "the last has not ended"
    assert outcome.silent_batches == 1


def test_a_change_between_two_batches_is_in_the_time_of_the_second() -> None:
    events = [STARTED, batch(0, 10, 1, 0), batch(1, 0, 0, 0), batch(2, 10, 1, 0)]
    events += [migrate(0, "start"), migrate(1, "end")]
    (change,) = Outcome.of(events, taken_ms=[100, 300]).changes
    assert (change.lower, change.upper) == (1, 2)


def test_a_spill_that_was_refused_is_none() -> None:
    spills = [{"event": "spill", "batch": 0, "groups": groups} for groups in (3, 0, 1)]
    assert Outcome.of([batch(0, 1, 1, 5), *spills], [1]).spills == 2
