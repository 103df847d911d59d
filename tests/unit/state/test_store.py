from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from braid.model.errors import DamagedFile, StorageFull
from braid.state import store as store_module
from braid.state.groups import group_of
from braid.state.horizon import NO_HORIZON, Horizon
from braid.state.log import LogFile
from braid.state.runs import SortedRun, encode, hashes_of, times_of
from braid.state.store import DISK, MEMORY, OpenRun, Ownership, RunStore
from tests.unit.state.making import (
    flip_bit,
    random_rows,
    rewrite,
    run_rows,
    small_disk,
    store_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa


@pytest.fixture(autouse=True)
def _another_process() -> Iterator[None]:
    """A process remembers what it has checked; each of these tests stands for several."""
    store_module._verified.clear()
    yield
    store_module._verified.clear()


def stored_run(
    store: RunStore, count: int = 500, name: str = "r"
) -> tuple[SortedRun, pa.RecordBatch]:
    """A run in the memory tier, with a log section behind it."""
    rows = random_rows(np.random.default_rng(count), count, 0, 1000)
    data = encode(rows)
    run = store.describe(name, rows, data)
    log = LogFile(store.log / f"{name}.log")
    run = replace(run, backing=(log.add(run, data),))
    log.write()
    return store.write(run, data), rows


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    rewrite(path, b"")


def truncate(path: Path) -> None:
    rewrite(path, path.read_bytes()[:-1])


def lengthen(path: Path) -> None:
    rewrite(path, path.read_bytes() + b"\0")


def flip_the_middle(path: Path) -> None:
    flip_bit(path, path.stat().st_size // 2)


def flip_the_start(path: Path) -> None:
    flip_bit(path, 0)


DAMAGES = [remove, empty, truncate, lengthen, flip_the_start, flip_the_middle]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_made_again_from_the_log(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    store = store_in(tmp_path)
    run, rows = stored_run(store)
    store_module._verified.clear()
    damage(tmp_path / MEMORY / run.file)
    found = store.open(run, NO_HORIZON)
    assert found is not None
    assert found[1].equals(rows)
    assert (found[0], store.rebuilt_runs) == (run, 1)
    assert store.open(run, NO_HORIZON) is not None
    assert store.rebuilt_runs == 1, "the second time it is there"


def test_an_undamaged_run_is_not_made_again(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    run, rows = stored_run(store)
    store_module._verified.clear()
    assert store.open(run, NO_HORIZON) == OpenRun(run, rows)
    assert store.rebuilt_runs == 0


def test_a_run_of_a_tier_that_this_machine_lacks_is_made_again(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    run, rows = stored_run(store)
    elsewhere = RunStore({DISK: tmp_path / DISK}, store.log, store.ownership)
    found = elsewhere.open(run, NO_HORIZON)
    assert found is not None
    assert (found[0].tier, found[1]) == (DISK, rows)


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        (remove, "missing"),
        (empty, "empty"),
        (truncate, "ends after"),
        (flip_the_middle, "checksum"),
    ],
)
def test_a_damaged_log_is_an_error_that_names_the_file_and_a_cure(
    tmp_path: Path, damage: Callable[[Path], None], finding: str
) -> None:
    store = store_in(tmp_path)
    run, _ = stored_run(store)
    (tmp_path / MEMORY / run.file).unlink()
    damage(store.log / "r.log")
    with pytest.raises(DamagedFile, match=finding) as caught:
        store.open(run, NO_HORIZON)
    assert str(store.log / "r.log") in caught.value.message
    assert "restore" in str(caught.value.hint)


def test_a_run_that_is_made_again_holds_the_owners_living_rows_alone(tmp_path: Path) -> None:
    run, rows = stored_run(store_in(tmp_path))
    (tmp_path / MEMORY / run.file).unlink()
    owned = np.arange(16) < 4
    store = store_in(tmp_path, Ownership(16, owned))
    lacking = replace(run, backing=(run.backing[0].lacking(np.arange(16) == 2),))
    found = store.open(lacking, Horizon(300))
    assert found is not None
    fresh, kept = found.run, found.rows
    assert set(group_of(hashes_of(kept), 16)) == {0, 1, 3}
    assert times_of(kept).min() == fresh.oldest_us >= 300
    of_others = ~np.isin(group_of(hashes_of(rows), 16), [0, 1, 3])
    assert kept.num_rows == int((~of_others & (times_of(rows) >= 300)).sum()) == fresh.rows


@pytest.mark.parametrize(("horizon_us", "left"), [(19, 1), (20, 1), (21, 0)])
def test_a_row_on_the_horizon_itself_comes_back(
    tmp_path: Path, horizon_us: int, left: int
) -> None:
    store = store_in(tmp_path)
    kept = store.ownership.keep(run_rows([7, 7], [10, 20]), Horizon(horizon_us))
    assert kept.num_rows == left


def test_a_run_of_which_nothing_lives_is_not_made_again(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    run, _ = stored_run(store)
    (tmp_path / MEMORY / run.file).unlink()
    assert store.open(run, Horizon(1001)) is None
    assert not list((tmp_path / MEMORY).iterdir())


def test_runs_go_to_disk_when_memory_is_full(tmp_path: Path) -> None:
    with small_disk(tmp_path / MEMORY, "64k"):
        store = store_in(tmp_path)
        tiers = []
        for number in range(6):
            run, rows = stored_run(store, 1000 + number, f"r{number}")
            tiers.append(run.tier)
            opened = store.open(run, NO_HORIZON)
            assert opened is not None
            assert opened[1].equals(rows)
            del opened
        assert tiers == [MEMORY] * 2 + [DISK] * 4
        assert {p.name for p in (tmp_path / MEMORY).iterdir()} == {"r0", "r1"}
        store.remove_others([])
        assert stored_run(store, 1000, "r9")[0].tier == MEMORY


def test_when_the_disk_is_full_too_that_is_an_error_that_names_it(tmp_path: Path) -> None:
    with small_disk(tmp_path / MEMORY, "16k"), small_disk(tmp_path / DISK, "16k"):
        store = store_in(tmp_path)
        with pytest.raises(StorageFull) as caught:
            stored_run(store, 1000)
        assert str(tmp_path / DISK) in caught.value.message
        assert "free some space" in str(caught.value.hint)
        assert not [*(tmp_path / MEMORY).iterdir(), *(tmp_path / DISK).iterdir()]


def test_a_full_log_folder_is_an_error_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "log", "16k"):
        with pytest.raises(StorageFull, match=r"no space left in .*log"):
            stored_run(store_in(tmp_path), 1000)
        assert os.listdir(tmp_path / "log") == []


def test_files_of_runs_that_no_ladder_has_are_removed(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    kept, _ = stored_run(store, name="kept")
    stored_run(store, name="dropped")
    (tmp_path / DISK / "x.123.pending").touch()
    store.remove_others([kept.file])
    assert [p.name for tier in store.tiers.values() for p in tier.iterdir()] == ["kept"]


def test_a_run_knows_how_its_deadlines_are_spread(tmp_path: Path) -> None:
    deadlines = list(range(0, 10_000, 5))
    rows = run_rows(range(2000), range(2000), deadlines)
    run = store_in(tmp_path).describe("run", rows, encode(rows))
    assert (run.until_us[0], run.until_us[-1]) == (0, 9995)
    assert run.until_us == pytest.approx(range(0, 10_001, 1250), abs=50)
    horizon = Horizon(low_us=2500)
    assert horizon.dead_rows(run) == pytest.approx(500, rel=0.05)
    assert horizon.dead_rows(replace(run, until_us=())) == 0
    assert Horizon(low_us=9996).is_behind(run)
    assert not Horizon(low_us=9995).is_behind(run)


def test_a_run_in_an_older_record_has_no_deadlines(tmp_path: Path) -> None:
    run, _ = stored_run(store_in(tmp_path))
    older = {name: value for name, value in run.to_json().items() if name != "until_us"}
    assert SortedRun.from_json(older) == run
    joined = replace(run, until_us=(1, 2, 3))
    assert SortedRun.from_json(json.loads(json.dumps(joined.to_json()))) == joined
