"""`auto` beside the others, on a modelled cluster in the settings of the papers' figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from braid.control.proposal import Spill
from braid.control.shares import shared_assignment
from braid.control.strategy import STRATEGIES, make_strategy, parameters_of
from braid.record.move import Move
from tests.unit.control.modelled import ROW_BYTES, Cluster

GROUPS, ROWS, BATCHES = 240, 10.0, 100
ALL_BYTES = int(GROUPS * ROWS * BATCHES * ROW_BYTES)
EVEN = np.full(GROUPS, ROWS)
EXACT = [name for name in STRATEGIES if name not in ("none", "relocate-only")]
"""Those that keep to a budget."""


def owners(*shares: float) -> np.ndarray:
    return np.array(shared_assignment(GROUPS, shares))


def tried(name: str, inflow: Any = EVEN, batches: int = BATCHES, **setting: Any) -> Cluster:
    fast = {"tau_ms": 50} if "tau_ms" in parameters_of(name) else {}
    setting["owner"] = setting["owner"].copy()
    cluster = Cluster(workers=3, strategy=make_strategy(name, **fast), **setting)
    return cluster.run(batches, inflow)


def test_with_ample_memory_and_even_work_it_does_nothing() -> None:
    cluster = tried("auto", owner=owners(1 / 3, 1 / 3, 1 / 3), budget_bytes=2 * ALL_BYTES)
    assert cluster.accepted == []


def test_it_keeps_all_in_memory_where_moving_can() -> None:
    setting = {"owner": owners(0.6, 0.2, 0.2), "budget_bytes": int(ALL_BYTES / 3 * 1.15)}
    cluster = tried("auto", **setting)
    assert cluster.spilled_bytes == 0
    assert cluster.most_over_bytes <= 0
    assert 0 < cluster.count(Move) < 10
    assert cluster.results > tried("spill-only", **setting).results


def test_it_spreads_what_must_be_spilled() -> None:
    setting = {"owner": owners(2 / 3, 1 / 6, 1 / 6), "budget_bytes": ALL_BYTES // 6}
    ours, alone = tried("auto", **setting), tried("spill-only", **setting)
    busiest = ours.per_worker(ours.owed).max()
    assert busiest <= 0.6 * alone.per_worker(alone.owed).max()


@pytest.mark.parametrize("rate", [0.004, 0.016])
def test_it_keeps_productive_groups_of_one_worker_in_others_memory(rate: float) -> None:
    owner = owners(1 / 3, 1 / 3, 1 / 3)
    setting = {
        "owner": owner,
        "rate": np.where(owner == 0, rate, 0.001),
        "budget_bytes": ALL_BYTES // 6,
    }
    ours = tried("auto", **setting).results
    lazy, active = (tried(name, **setting).results for name in ("lazy-disk", "active-disk"))
    assert active > lazy
    assert ours > 1.1 * lazy


@pytest.mark.parametrize("shares", [(1 / 3, 1 / 3, 1 / 3), (0.6, 0.2, 0.2)])
@pytest.mark.parametrize("share_of_memory", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("kept", [1.0, 0.97])
def test_it_is_never_much_worse_than_the_best(
    shares: tuple[float, ...], share_of_memory: float, kept: float
) -> None:
    rate = np.array([0.001, 0.002, 0.004])[np.arange(GROUPS) % 3]
    state = ALL_BYTES if kept == 1 else GROUPS * ROWS * ROW_BYTES / (1 - kept)
    setting = {
        "owner": owners(*shares),
        "rate": rate,
        "kept": kept,
        "budget_bytes": int(state * share_of_memory / 3),
    }
    results = {name: tried(name, **setting).results for name in EXACT}
    assert results["auto"] >= 0.97 * max(results.values()), results


def test_it_relieves_a_slow_worker_and_then_rests() -> None:
    setting = {
        "owner": owners(1 / 3, 1 / 3, 1 / 3),
        "slowness": np.array([4.0, 1.0, 1.0]),
        "kept": 0.95,
    }
    calm = tried("none", EVEN * 10, batches=200, **setting)
    ours = tried("auto", EVEN * 10, batches=200, **setting)
    assert ours.busy_total_ms < 0.6 * calm.busy_total_ms
    assert ours.count(Move) < 8


@pytest.mark.parametrize("name", EXACT)
def test_memory_stays_bounded(name: str) -> None:
    """By one batch, and by those that a move in flight keeps a spill waiting for."""
    cluster = tried(name, owner=owners(0.6, 0.2, 0.2), budget_bytes=ALL_BYTES // 20)
    batch_bytes = GROUPS * ROWS * ROW_BYTES
    assert cluster.most_over_bytes <= (1 + cluster.move_batches) * batch_bytes
    assert cluster.count(Spill)


def test_workers_without_memory_and_without_state_are_left_alone() -> None:
    cluster = tried("auto", 0 * EVEN, batches=5, owner=owners(0.7, 0.2, 0.1), budget_bytes=0)
    assert cluster.accepted == []


@pytest.mark.parametrize("name", STRATEGIES)
def test_load_that_alternates_makes_nobody_thrash(name: str) -> None:
    owner = owners(0.4, 0.3, 0.3)

    def alternating(batch: int) -> np.ndarray:
        return np.where((owner == 0) == (batch // 20 % 2 == 0), 20.0, 2.0)

    cluster = tried(name, alternating, batches=200, owner=owner)
    moved = sum(len(m.groups) for m in cluster.accepted if isinstance(m, Move))
    assert moved <= 3 * GROUPS, "ten turns"


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_strategies_propose_is_hardly_ever_refused(name: str) -> None:
    cluster = tried(name, owner=owners(0.6, 0.2, 0.2), budget_bytes=ALL_BYTES // 8)
    assert [refusal.reason for refusal in cluster.refused] == []
