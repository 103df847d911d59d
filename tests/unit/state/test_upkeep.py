from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from braid.state.groups import group_of
from braid.state.horizon import NO_HORIZON, Horizon
from braid.state.ladder import SEAL_SECTIONS
from braid.state.log import LogFile
from braid.state.store import MEMORY, Ownership, RunStore
from braid.state.upkeep import Upkeep, attach, open_ladder, relinquished
from tests.unit.state.making import random_rows, run_rows, store_in

if TYPE_CHECKING:
    from pathlib import Path

    from braid.state.runs import Ladder, SortedRun

GROUPS = 16


def upkeep_of(store: RunStore, token: str) -> Upkeep:
    return Upkeep(store, LogFile(store.log / f"{token}.log"), token)


def grown(store: RunStore, batches: int, rows: int = 40) -> Ladder:
    """A ladder after some batches of one millisecond each, none of it dead."""
    ladder: Ladder = ()
    random = np.random.default_rng(batches)
    for number in range(batches):
        fresh = random_rows(random, rows, number * 1000, number * 1000 + 999)
        upkeep = upkeep_of(store, str(number))
        ladder = upkeep.insert(open_ladder(store, ladder, NO_HORIZON), fresh, NO_HORIZON)
        upkeep.log.write()
    return ladder


def contents(
    store: RunStore, ladder: Ladder, horizon: Horizon = NO_HORIZON
) -> list[tuple[int, ...]]:
    rows = [pair.rows.to_pylist() for pair in open_ladder(store, ladder, horizon)]
    return sorted(tuple(row.values()) for part in rows for row in part)


def lose_all_runs(store: RunStore) -> None:
    store.remove_others([])


def owning(*groups: int) -> Ownership:
    return Ownership(GROUPS, np.isin(np.arange(GROUPS), groups))


@pytest.mark.parametrize("batches", [1, 5, SEAL_SECTIONS, 3 * SEAL_SECTIONS])
def test_a_ladder_made_again_from_the_log_has_the_same_rows(
    tmp_path: Path, batches: int
) -> None:
    store = store_in(tmp_path)
    ladder = grown(store, batches)
    before = contents(store, ladder)
    lose_all_runs(store)
    assert contents(store, ladder) == before
    assert store.rebuilt_runs == len(ladder)


def test_a_run_of_many_sections_is_logged_anew_as_one(tmp_path: Path) -> None:
    ladder = grown(store_in(tmp_path), 4 * SEAL_SECTIONS)
    assert sum(len(run.backing) for run in ladder) < 4 * SEAL_SECTIONS
    assert all(len(run.backing) <= SEAL_SECTIONS for run in ladder)
    assert sum(s.rows for run in ladder for s in run.backing) == sum(run.rows for run in ladder)


def test_dead_rows_of_a_batch_are_neither_stored_nor_logged(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    upkeep = upkeep_of(store, "0")
    ladder = upkeep.insert([], run_rows([1, 2, 3], [10, 20, 30]), Horizon(20))
    assert (ladder[0].rows, ladder[0].backing[0].rows) == (2, 2)
    assert contents(store, ladder) == [(2, 20, 1), (3, 30, 2)]


def test_a_batch_without_living_rows_leaves_no_log_file(tmp_path: Path) -> None:
    upkeep = upkeep_of(store_in(tmp_path), "0")
    assert upkeep.insert([], run_rows([1], [10]), Horizon(20)) == ()
    upkeep.log.write()
    assert not list((tmp_path / "log").iterdir())


def test_an_expired_run_is_dropped_whole(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    opened = open_ladder(
        store, upkeep_of(store, "0").insert([], run_rows([1], [10]), NO_HORIZON), NO_HORIZON
    )
    ladder = upkeep_of(store, "1").insert(opened, run_rows([2], [500]), Horizon(11))
    assert [(run.rows, run.oldest_us) for run in ladder] == [(1, 500)]


def test_a_row_on_the_horizon_itself_is_kept(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    opened = open_ladder(
        store, upkeep_of(store, "0").insert([], run_rows([1], [10]), NO_HORIZON), NO_HORIZON
    )
    ladder = upkeep_of(store, "1").insert(opened, run_rows([2], [500]), Horizon(10))
    assert (1, 10, 0) in contents(store, ladder, Horizon(10))


@pytest.mark.parametrize("lost", [False, True])
def test_a_group_that_was_taken_is_gone_and_stays_gone(tmp_path: Path, lost: bool) -> None:
    store = store_in(tmp_path)
    before = grown(store, 7)
    rows = contents(store, before)
    left, taken = detached(store, before, 5)
    assert taken is not None
    if lost:
        lose_all_runs(store)
    moved = contents(store, (taken,))
    assert {group_of(np.array([row[0]], np.uint64), GROUPS)[0] for row in moved} == {5}
    assert sorted(contents(store, left) + moved) == rows


def test_a_group_without_rows_can_be_taken(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    ladder = upkeep_of(store, "0").insert([], run_rows([1, 2], [10, 20]), NO_HORIZON)
    left, taken = detached(store, ladder, 9)
    assert taken is None
    assert contents(store, left) == contents(store, ladder)


def test_taking_all_of_a_runs_rows_leaves_no_run(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    ladder = upkeep_of(store, "0").insert([], run_rows([1, 2], [10, 20]), NO_HORIZON)
    left, taken = detached(store, ladder, 0)
    assert left == ()
    assert taken is not None
    assert taken.rows == 2


@pytest.mark.parametrize("lost", [False, True])
def test_a_group_goes_and_comes_back_without_a_row_more_or_less(
    tmp_path: Path, lost: bool
) -> None:
    home = store_in(tmp_path)
    (tmp_path / "away").mkdir()
    away = RunStore({MEMORY: tmp_path / "away"}, home.log, home.ownership)
    ladder = grown(home, 6)
    rows = contents(home, ladder)
    for trip in range(3):
        ladder, there = moved(home, ladder, (), f"go-{trip}")
        if lost:
            lose_all_runs(home)
            lose_all_runs(away)
        assert sorted(contents(home, ladder) + contents(away, there)) == rows
        there, ladder = moved(away, there, ladder, f"back-{trip}")
        if lost:
            lose_all_runs(home)
        assert contents(home, ladder) == rows
        assert there == ()


def detached(
    store: RunStore, ladder: Ladder, group: int, token: str = "move"
) -> tuple[Ladder, SortedRun | None]:
    """What is left of a ladder, and the run of a group that was taken out of it."""
    upkeep, opened = upkeep_of(store, token), open_ladder(store, ladder, NO_HORIZON)
    left, taken = upkeep.detach(opened, np.arange(GROUPS) == group, NO_HORIZON, MEMORY)
    upkeep.log.write()
    return tuple(pair.run for pair in left), None if taken is None else taken.run


def moved(giver: RunStore, given: Ladder, had: Ladder, token: str) -> tuple[Ladder, Ladder]:
    """Both ladders after group 3 has moved."""
    left, taken = detached(giver, given, 3, token)
    assert taken is not None
    return left, attach(relinquished(had, np.arange(GROUPS) == 3), taken)


def test_an_installed_group_counts_once_though_an_older_section_has_it_too(
    tmp_path: Path,
) -> None:
    # A section from the time of one worker; two workers share it now, and group 5 moves.
    one = store_in(tmp_path)
    ladder = grown(one, 1, rows=200)
    lose_all_runs(one)
    giver = RunStore({MEMORY: tmp_path / MEMORY}, one.log, owning(*range(8)))
    (tmp_path / "other").mkdir()
    taker = RunStore({MEMORY: tmp_path / "other"}, one.log, owning(*range(8, 16)))
    left, taken = detached(giver, ladder, 5)
    assert taken is not None
    installed = attach(relinquished(ladder, np.arange(GROUPS) == 5), taken)
    taker.ownership = owning(5, *range(8, 16))
    giver.ownership = owning(*(g for g in range(8) if g != 5))
    both = contents(giver, left) + contents(taker, installed)
    assert sorted(both) == contents(one, ladder)
