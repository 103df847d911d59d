from __future__ import annotations

import numpy as np
import pytest

from braid.control.statistics import GroupTable, WorkerLoad
from braid.control.tally import Tally


def test_productivity_is_results_per_byte_in_memory_and_on_disk() -> None:
    table = GroupTable.of([1, 2], memory_bytes=[10, 0], disk_bytes=[10, 5], results=[40, 5])
    assert table.productivity().tolist() == [2.0, 1.0]


def test_a_group_without_a_byte_has_productivity_zero() -> None:
    table = GroupTable.of([1], results=7, recent_results=7)
    assert table.productivity().tolist() == table.productivity(recent=True).tolist() == [0.0]


def test_a_table_has_no_other_figures() -> None:
    with pytest.raises(TypeError, match="weight"):
        GroupTable.of([1], weight=2)


def test_counts_add_up_and_sizes_are_replaced() -> None:
    tally = Tally({0: 4})
    for batch in (5, 6):
        tally.begin()
        tally.count(0, batch, [1, 3], [2, 0], [10, 1])
        tally.measure(0, [1], batch * 100, 7, batch)
    table = tally.tables({0: [0, 0, 0, 0]})[0][0]
    assert table.results.tolist() == [0, 20, 0, 2]
    assert table.memory_bytes.tolist() == [0, 600, 0, 0]
    assert table.disk_bytes.tolist() == [0, 7, 0, 0]
    assert table.rows.tolist() == [0, 6, 0, 0]
    assert table.last_insert.tolist() == [-1, 6, -1, -1], "no rows, no insert"


def test_what_is_recent_is_per_batch_and_fades() -> None:
    tally = Tally({0: 1}, half_life_batches=1)
    seen = []
    for rows in (8, 8, 8, 0, 0, 0, 0, 0, 0):
        tally.begin()
        tally.count(0, 0, [0], [rows], [rows])
        seen.append(tally.tables({0: [0]})[0][0].recent_rows[0])
    assert seen[:3] == [8, 8, 8]
    assert seen[3] == pytest.approx(4, rel=0.1)
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] < 0.2


def test_a_snapshot_gives_every_worker_its_groups() -> None:
    tally = Tally({0: 4, 1: 2})
    tally.measure(0, [0, 1, 2, 3], [1, 2, 3, 4], 0, 1)
    owners = {0: [2, 0, 2, 0], 1: [0, 0]}
    shot = tally.snapshot(3, 12.5, [WorkerLoad(w, 0) for w in range(3)], owners)
    assert [sorted(load.tables) for load in shot.workers] == [[0, 1], [], [0]]
    assert shot.workers[0].tables[0].group.tolist() == [1, 3]
    assert shot.workers[0].tables[0].memory_bytes.tolist() == [2, 4]
    assert shot.workers[2].tables[0].group.tolist() == [0, 2]
    assert [load.groups for load in shot.workers] == [4, 0, 2]


def test_a_snapshot_stays_as_it_was_and_cannot_be_changed() -> None:
    tally = Tally({0: 1})
    table = tally.tables({0: [0]})[0][0]
    tally.begin()
    tally.count(0, 0, [0], [1], [1])
    tally.measure(0, [0], 9, 9, 9)
    assert [table.results[0], table.memory_bytes[0], table.recent_rows[0]] == [0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        table.results[0] = 3


@pytest.mark.parametrize("far", [-1, 70_000])
def test_worker_numbers_may_be_any(far: int) -> None:
    tables = Tally({0: 3}).tables({0: np.array([5, far, 5])})
    assert {worker: spaces[0].group.tolist() for worker, spaces in tables.items()} == {
        5: [0, 2],
        far: [1],
    }


def test_groups_are_found_in_any_order() -> None:
    table = GroupTable.of([7, 3, 5])
    assert table.places([5, 4, 7, 99, -1, 3]).tolist() == [2, -1, 0, -1, -1, 1]
    assert table.places([]).tolist() == []
    assert GroupTable.of([]).places([1, 2]).tolist() == [-1, -1]
