from __future__ import annotations

from typing import Any

from braid.experiment.outcome import Outcome


def batch(number: int, rows: int, results: int, *memory: int) -> dict[str, Any]:
    workers = [
        {"worker": worker, "memory_bytes": size, "busy_ms": 10 * (worker + 1)}
        for worker, size in enumerate(memory)
    ]
    counts = {"batch": number, "input_rows": rows, "output_rows": results}
    return {"event": "batch", "workers": workers, **counts}


def cleanup(number: int, worker: int, results: int) -> dict[str, Any]:
    return {"event": "cleanup", "batch": number, "worker": worker, "results": results}


def test_curves_end_with_the_input_and_what_follows_is_the_clean_up() -> None:
    outcome = Outcome.of(
        [
            batch(0, 100, 5, 10, 20),
            {"event": "spill"},
            {"event": "relocate", "step": "quiesce", "rows": 7},
            batch(1, 0, 1, 12, 20),  # without rows, before the end
            cleanup(2, 0, 3),  # on the way
            batch(2, 50, 9, 30, 5),
            {"event": "relocate", "step": "reactivate", "rows": 0},
            cleanup(3, 1, 4),
            batch(3, 0, 4, 30, 5),
            cleanup(4, 1, 2),
            batch(4, 0, 2, 30, 5),
        ]
    )
    assert outcome.input_rows == (100, 150)
    assert outcome.output_rows == (5, 15), "with what came between"
    assert outcome.memory_bytes == ((10, 20), (30, 5))
    assert (outcome.spills, outcome.relocations, outcome.moved_rows) == (1, 1, 7)
    assert outcome.cleanup_rows == (0, 6)
    assert outcome.cleanup_ms == (20, 40)
    assert (outcome.run_time_rows, outcome.all_cleanup_rows, outcome.all_rows) == (15, 6, 21)
    assert outcome.most_bytes == 30
