"""Each policy on the cases that its paper describes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from braid.control.guard import vet
from braid.control.proposal import Spill
from braid.control.strategy import STRATEGIES, make_strategy, parameters_of
from braid.control.strategy.flux_load import FluxLoad
from braid.model.errors import BraidError
from braid.record.move import Move
from tests.unit.control.making import snapshot, worker

if TYPE_CHECKING:
    from braid.control.proposal import Proposal
    from braid.control.statistics import Snapshot

TENS = [10] * 10


def decided(shot: Snapshot, name: str, **parameters: Any) -> tuple[Proposal, ...]:
    return make_strategy(name, **parameters).decide(shot)[1]


def kinds(proposals: tuple[Proposal, ...]) -> list[type]:
    return [type(proposal) for proposal in proposals]


def test_none_leaves_everything_as_it_is() -> None:
    assert decided(snapshot(worker(0, [500], budget_bytes=1), worker(1, [])), "none") == ()


def test_spill_only_pushes_k_percent_of_the_least_productive_groups() -> None:
    full = worker(0, TENS, results=[5, 4, 3, 2, 1, 9, 9, 9, 9, 9], budget_bytes=99)
    (spill,) = decided(snapshot(full, worker(1, TENS, budget_bytes=100)), "spill-only")
    assert isinstance(spill, Spill)
    assert (spill.worker, spill.groups, spill.amount_bytes) == (0, {0: (4, 3, 2)}, 30)
    assert spill.reason
    assert spill.numbers["mark_bytes"] == 99


def test_a_worker_far_above_its_budget_spills_all_of_the_excess() -> None:
    (spill,) = decided(snapshot(worker(0, TENS, budget_bytes=20)), "spill-only")
    assert spill.amount_bytes == 80


def test_a_worker_that_cannot_spill_or_is_engaged_does_not() -> None:
    full = worker(0, TENS, budget_bytes=50)
    assert not decided(snapshot(replace(full, spillable=False)), "spill-only")
    assert not decided(snapshot(full, spilling=frozenset({0})), "spill-only")
    moving = (Move(0, 1, 0, (1,)),)
    assert not decided(snapshot(full, worker(1, TENS), moves=moving), "spill-only")


def test_relocate_only_moves_half_the_difference_productive_groups_first() -> None:
    most = worker(0, TENS, results=range(10))
    (move,) = decided(snapshot(most, worker(1, [10] * 6), worker(2, [10] * 2)), "relocate-only")
    assert isinstance(move, Move)
    assert (move.sender, move.receiver, move.space) == (0, 2, 0)
    assert move.groups == (9, 8, 7, 6)
    assert move.amount_bytes == 40


def test_lazy_disk_moves_below_theta_r_and_not_at_it() -> None:
    even = snapshot(worker(0, TENS), worker(1, [10] * 8))
    uneven = snapshot(worker(0, TENS), worker(1, [10] * 7))
    assert not decided(even, "lazy-disk", theta_r=0.8)
    assert kinds(decided(uneven, "lazy-disk", theta_r=0.8)) == [Move]


def test_lazy_disk_waits_for_tau_between_relocations() -> None:
    pair = worker(0, TENS), worker(1, [10])
    soon = snapshot(*pair, elapsed_ms=50_000, last_relocation_ms=10_000)
    assert not decided(soon, "lazy-disk")
    assert decided(replace(soon, elapsed_ms=55_000), "lazy-disk")
    assert not decided(
        replace(soon, elapsed_ms=99_000, moves=(Move(0, 1, 0, (3,)),)), "lazy-disk"
    )


def test_lazy_disk_moves_rather_than_spills_and_spills_where_nothing_moves() -> None:
    shot = snapshot(
        worker(0, [10] * 12, budget_bytes=100),
        worker(1, [10] * 11, budget_bytes=100),
        worker(2, [10] * 2, budget_bytes=100),
    )
    proposals = decided(shot, "lazy-disk")
    assert kinds(proposals) == [Move, Spill]
    assert [p.worker for p in proposals if isinstance(p, Spill)] == [1]
    assert vet(proposals, shot).refused == ()


def test_lazy_disk_spills_when_all_memory_is_used() -> None:
    shot = snapshot(*(worker(n, [10] * 11, budget_bytes=100) for n in range(3)))
    assert kinds(decided(shot, "lazy-disk")) == [Spill] * 3


def test_lazy_disk_waits_for_a_sender_that_spills() -> None:
    shot = snapshot(worker(0, TENS), worker(1, [10]), spilling=frozenset({0}))
    assert not decided(shot, "lazy-disk")


def test_groups_with_a_part_on_disk_stay_unless_they_are_probed_there() -> None:
    shot = snapshot(worker(0, [50, 50], disk_bytes=[1, 1]), worker(1, []))
    assert not decided(shot, "lazy-disk")
    assert decided(replace(shot, defer=False), "lazy-disk")


def active_case(most: int, least: int, budget_bytes: int = 80) -> Snapshot:
    return snapshot(
        worker(0, TENS, disk_bytes=0, made_results=most, budget_bytes=110),
        worker(1, TENS, disk_bytes=4, made_results=least, budget_bytes=budget_bytes + 30),
    )


def test_active_disk_forces_the_least_productive_worker_to_spill() -> None:
    shot = active_case(most=300, least=100)
    after, (spill,) = make_strategy("active-disk").decide(shot)
    assert isinstance(spill, Spill)
    assert spill.worker == 1
    assert spill.numbers["most_rate"] == 30
    assert spill.amount_bytes == 20, "240 bytes of state, 220 of memory"
    assert spill.groups == {0: (100, 101)}
    done = pushed_out(shot, 100, 101, after_ms=1)
    after, others = after.decide(done)
    assert others == ()
    still = replace(done, elapsed_ms=done.elapsed_ms + 1e6)
    assert after.decide(still)[1] == (), "all that memory has no room for was forced"


def pushed_out(shot: Snapshot, *groups: int, after_ms: float) -> Snapshot:
    """Worker 1's groups of before, some of them on disk."""
    rich, poor = shot.workers
    table = poor.tables[0]
    are_out = np.isin(table.group, groups)
    pushed = worker(
        1,
        np.where(are_out, 0, 10).tolist(),
        disk_bytes=table.disk_bytes + np.where(are_out, 10, 0),
        made_results=poor.made_results,
        budget_bytes=poor.budget_bytes,
    )
    return replace(shot, elapsed_ms=shot.elapsed_ms + after_ms, workers=(rich, pushed))


def test_a_forced_spill_that_was_refused_takes_nothing_of_what_may_be_forced() -> None:
    shot = active_case(most=300, least=100)
    after, (first,) = make_strategy("active-disk").decide(shot)
    again, (second,) = after.decide(replace(shot, elapsed_ms=shot.elapsed_ms + 1))
    assert second == first, "nothing is on disk that was not before, so nothing was done"
    assert again.asked


def test_what_was_forced_counts_no_longer_than_it_is_on_disk() -> None:
    shot = active_case(most=300, least=100)
    after, (first,) = make_strategy("active-disk").decide(shot)
    after, others = after.decide(pushed_out(shot, 100, 101, after_ms=1))
    assert others == ()
    assert sum(after.forced.values()) == first.amount_bytes
    # Expired, cleaned up or taken in; others are on disk instead.
    poor = worker(1, TENS, disk_bytes=[0, 0, *[5] * 8], made_results=100, budget_bytes=110)
    much_later = replace(
        shot, elapsed_ms=shot.elapsed_ms + 1e6, workers=(shot.workers[0], poor)
    )
    after, (second,) = after.decide(much_later)
    assert second.reason == first.reason
    assert second.amount_bytes == first.amount_bytes
    assert not after.forced


def test_active_disk_leaves_alike_workers_and_ample_memory_alone() -> None:
    assert not decided(active_case(most=200, least=100), "active-disk")
    assert decided(active_case(most=200, least=100), "active-disk", lambda_=1.9)
    assert not decided(active_case(most=300, least=100, budget_bytes=180), "active-disk")


def test_active_disk_moves_first_if_memory_is_uneven() -> None:
    shot = snapshot(worker(0, TENS, made_results=9), worker(1, [10], made_results=0))
    assert kinds(decided(shot, "active-disk")) == [Move]


def flux_case(*busy: float, **other: Any) -> Snapshot:
    workers = (
        worker(n, [10] * 5, recent_rows=[1, 50, 20, 20, 9], busy_ms=b, idle_ms=100 - b)
        for n, b in enumerate(busy)
    )
    return snapshot(*workers, **other)


def test_flux_load_moves_the_first_group_that_helps_each_pair_from_both_ends() -> None:
    moves = decided(flux_case(90, 80, 30, 10), "flux-load")
    assert [(m.sender, m.receiver, m.groups) for m in moves if isinstance(m, Move)] == [
        (0, 3, (1,)),
        (1, 2, (101,)),
    ]


@pytest.mark.parametrize(
    ("busy", "parameters"),
    [
        ((50, 45), {}),  # hardly uneven
        ((99, 91), {"th_imb": 1.01}),  # the receiver is busy itself
        ((0, 0), {}),
    ],
)
def test_flux_load_leaves_some_pairs_alone(
    busy: tuple[float, float], parameters: dict[str, float]
) -> None:
    assert not decided(flux_case(*busy), "flux-load", **parameters)


def test_flux_rounds_last_as_long_as_their_moves_and_shrink_without_any() -> None:
    strategy: Any = FluxLoad(delta_min_ms=10)
    strategy, moves = strategy.decide(flux_case(90, 10, elapsed_ms=1000))
    assert moves
    flying = (Move(0, 1, 0, (1,)),)
    strategy, none = strategy.decide(flux_case(90, 10, elapsed_ms=1100, moves=flying))
    assert not none
    strategy, none = strategy.decide(flux_case(90, 10, elapsed_ms=1400))
    assert not none
    assert strategy.round.delta_ms == 400
    strategy, none = strategy.decide(flux_case(90, 10, elapsed_ms=1700))
    assert not none, "still collecting"
    strategy, none = strategy.decide(flux_case(10, 90, elapsed_ms=1800))
    assert not none, "even, over the whole round"
    assert strategy.round.delta_ms == 200
    assert strategy.round.utilisation() == {}, "a new round"
    for number in range(9):
        strategy, _ = strategy.decide(flux_case(50, 50, elapsed_ms=2100 + 300 * number))
    assert strategy.round.delta_ms == 10


def test_flux_memory_moves_the_largest_group_that_helps() -> None:
    shot = snapshot(
        worker(0, [60, 30, 20], budget_bytes=200, idle_ms=100),
        worker(1, [50], budget_bytes=200),
    )
    (move,) = decided(shot, "flux-memory")
    assert isinstance(move, Move)
    assert (move.sender, move.receiver, move.groups) == (0, 1, (1,)), "60 would turn it round"


def test_flux_memory_prefers_groups_without_a_part_on_disk() -> None:
    shot = snapshot(
        worker(0, [30, 10], disk_bytes=[50, 0], budget_bytes=50),
        worker(1, [10], budget_bytes=100, idle_ms=100),
        defer=False,
    )
    (move,) = decided(shot, "flux-memory", theta_m=1.0)
    assert isinstance(move, Move)
    assert move.groups == (1,)


def test_flux_hybrid_minds_work_until_something_is_on_disk() -> None:
    busy = worker(0, [10, 10], recent_rows=[30, 20], busy_ms=90, idle_ms=10)
    full = worker(1, [90, 50], recent_rows=[1, 1], busy_ms=5, idle_ms=95)
    (work,) = decided(snapshot(busy, full), "flux-hybrid")
    assert isinstance(work, Move)
    assert work.sender == 0
    spilled = replace(full, disk_bytes=1)
    (memory,) = decided(snapshot(busy, spilled), "flux-hybrid")
    assert isinstance(memory, Move)
    assert memory.sender == 1


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_copes_with_nothing(name: str) -> None:
    lonely = snapshot(worker(0, [], budget_bytes=0))
    for shot in (snapshot(), lonely, snapshot(worker(0, [5], budget_bytes=0), batch=0)):
        strategy = make_strategy(name)
        for _ in range(3):
            strategy, _ = strategy.decide(shot)


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_is_made_of_its_parameters(name: str) -> None:
    assert make_strategy(name, **parameters_of(name)) == make_strategy(name)


def test_an_unknown_strategy_is_named_with_the_nearest() -> None:
    with pytest.raises(BraidError, match="unknown strategy 'lazydisk'") as caught:
        make_strategy("lazydisk")
    assert caught.value.hint == "did you mean 'lazy-disk'?"


def test_an_unknown_parameter_is_named_with_the_nearest() -> None:
    with pytest.raises(BraidError, match="unknown parameter of lazy-disk 'theta'") as caught:
        make_strategy("lazy-disk", theta=0.5)
    assert "theta_" in str(caught.value.hint)
    with pytest.raises(BraidError, match="known: none"):
        make_strategy("none", k=3)
    with pytest.raises(BraidError, match="unknown parameter"):
        make_strategy("active-disk", forced={})


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("spill-only", "k", 0),
        ("spill-only", "k", 100.5),
        ("spill-only", "k", "30"),
        ("spill-only", "k", float("nan")),
        ("spill-only", "theta_m", 0),
        ("spill-only", "order", "best"),
        ("spill-only", "theta_t", -1),
        ("lazy-disk", "theta_r", 0),
        ("lazy-disk", "theta_r", 1),
        ("lazy-disk", "theta_r", True),
        ("lazy-disk", "tau_ms", -1),
        ("lazy-disk", "k", 101),
        ("active-disk", "lambda_", 1),
        ("flux-load", "th_imb", 0.9),
        ("flux-memory", "th_util", 1.1),
        ("flux-hybrid", "delta_min_ms", 0),
        ("auto", "horizon_batches", 0),
        ("auto", "worthwhile", 1),
        ("auto", "imbalance", float("inf")),
    ],
)
def test_nonsense_is_refused_by_its_name(name: str, parameter: str, value: object) -> None:
    with pytest.raises(BraidError) as caught:
        make_strategy(name, **{parameter: value})
    assert parameter in caught.value.message or parameter == "order"
    assert repr(value) in caught.value.message
