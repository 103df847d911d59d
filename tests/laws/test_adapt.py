"""What holds for every choice, every proposal however hostile, and every strategy."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from braid.control.choose import ORDERS, Chooser
from braid.control.guard import vet
from braid.control.proposal import Spill
from braid.control.shares import parse_shares, shared_assignment
from braid.control.sizes import LARGEST_BYTES, parse_size, show_size
from braid.control.statistics import GroupTable, Snapshot, WorkerLoad
from braid.control.strategy import STRATEGIES, make_strategy, parameters_of
from braid.record.move import Move
from tests.unit.control.modelled import ROW_BYTES, Cluster

LAW = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=100)
HEAVY = settings(LAW, max_examples=15)
SPACES, WORKERS, GROUPS = 2, 4, 12
MOST_LATE_MOVES = 60  # each group of sixty once, in fifty batches

figures = st.integers(0, 50)


@st.composite
def tables(draw: st.DrawFn, ids: list[int] | None = None) -> GroupTable:
    groups = draw(st.lists(figures, max_size=12, unique=True)) if ids is None else ids
    many = st.lists(figures, min_size=len(groups), max_size=len(groups))
    disk = draw(st.one_of(st.just([0] * len(groups)), many))
    names = ("memory_bytes", "results", "recent_results", "recent_rows", "last_insert")
    return GroupTable.of(groups, disk_bytes=disk, **{name: draw(many) for name in names})


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    owner = draw(
        st.lists(
            st.lists(st.integers(0, WORKERS - 1), min_size=GROUPS, max_size=GROUPS),
            min_size=SPACES,
            max_size=SPACES,
        )
    )
    loads = []
    for worker in range(WORKERS):
        owned = {
            space: draw(tables([g for g in range(GROUPS) if owner[space][g] == worker]))
            for space in range(SPACES)
        }
        memory = sum(int(table.memory_bytes.sum()) for table in owned.values())
        disk = sum(int(table.disk_bytes.sum()) for table in owned.values())
        loads.append(
            WorkerLoad(
                worker,
                memory,
                disk,
                draw(st.none() | st.integers(0, 2 * memory + 1)),
                busy_ms=draw(figures),
                idle_ms=draw(figures),
                input_rows=draw(figures),
                made_results=draw(figures),
                movable=draw(st.integers(0, 5)) > 0,
                spillable=draw(st.integers(0, 5)) > 0,
                tables=owned,
            )
        )
    moves = []
    if draw(st.booleans()):
        space, sender = draw(st.integers(0, SPACES - 1)), draw(st.integers(0, WORKERS - 1))
        ids = loads[sender].tables[space].group.tolist()
        groups = tuple(draw(st.lists(st.sampled_from(ids), unique=True))) if ids else ()
        moves.append(Move(sender, (sender + 1) % WORKERS, space, groups))
    spilling = draw(st.frozensets(st.integers(0, WORKERS - 1), max_size=1))
    batch = draw(figures)
    spilling -= {worker for move in moves for worker in (move.sender, move.receiver)}
    return Snapshot(
        batch, batch * 1000.0, tuple(loads), tuple(moves), spilling, None, draw(st.booleans())
    )


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.text(max_size=3),
    st.integers(),
    st.binary(max_size=2),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.integers(0, 2), st.integers(), max_size=2),
)
ids = st.lists(st.integers(0, GROUPS), max_size=4).map(tuple)
workers = st.integers(0, WORKERS)
spaces = st.integers(0, SPACES)


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(good, good, good, good, good, good, junk)


hostile = st.one_of(
    st.builds(
        Spill,
        mostly(workers),
        mostly(st.dictionaries(spaces | st.text(max_size=1), mostly(ids), max_size=2)),
        mostly(figures),
        mostly(st.text()),
        junk,
    ),
    st.builds(
        Move,
        mostly(workers),
        mostly(workers),
        mostly(spaces),
        mostly(ids),
        mostly(figures),
        mostly(st.text()),
        junk,
    ),
    junk,
)


@LAW
@given(
    st.dictionaries(st.integers(0, 3), tables(), max_size=3),
    st.integers(-5, 400),
    st.sampled_from(sorted(ORDERS)),
    st.booleans(),
    st.integers(0, 60),
)
def test_enough_is_chosen_and_never_more_than_one_group_too_much(
    held: dict[int, GroupTable], amount: int, order: str, recent: bool, batch: int
) -> None:
    chosen, total = Chooser(order, recent).choose(held, amount, batch)
    memory = {
        (space, int(group)): int(size)
        for space, table in held.items()
        for group, size in zip(table.group, table.memory_bytes, strict=True)
    }
    sizes = [memory[space, group] for space, groups in chosen.items() for group in groups]
    named = Counter((space, group) for space, groups in chosen.items() for group in groups)
    assert sum(sizes) == total
    assert all(sizes)
    assert set(named.values()) <= {1}
    assert total >= min(amount, sum(memory.values())), "enough, or all there is"
    if sizes:
        assert total - max(sizes) < amount, "one group less would not do"
    else:
        assert amount <= 0 or not sum(memory.values())


@LAW
@given(
    st.dictionaries(st.integers(0, 3), tables(), max_size=3),
    st.integers(-5, 400),
    st.sampled_from(sorted(ORDERS)),
)
def test_what_is_chosen_within_an_amount_fits_and_nothing_else_would(
    held: dict[int, GroupTable], amount: int, order: str
) -> None:
    chosen, total = Chooser(order).choose_within(held, amount, 1)
    assert total <= max(0, amount)
    left = [
        int(size)
        for space, table in held.items()
        for group, size in zip(table.group, table.memory_bytes, strict=True)
        if size and group not in chosen.get(space, ())
    ]
    assert all(size > amount - total for size in left)


@LAW
@given(snapshots(), st.lists(hostile, max_size=8))
def test_the_guard_accepts_nothing_that_breaks_its_rules(
    shot: Snapshot, proposals: list[Any]
) -> None:
    verdict = vet(proposals, shot)
    assert len(verdict.accepted) + len(verdict.refused) == len(proposals)
    assert all(refusal.reason and "\n" not in refusal.reason for refusal in verdict.refused)
    check_safe(shot, verdict.accepted)
    again = vet(verdict.accepted, shot)
    assert again.accepted == verdict.accepted, "what is safe stays safe"
    assert not again.refused


@LAW
@given(snapshots(), st.sampled_from(sorted(STRATEGIES)))
def test_strategies_answer_any_snapshot_the_same_way_twice(shot: Snapshot, name: str) -> None:
    strategy = make_strategy(name, **({"tau_ms": 0} if "tau_ms" in parameters_of(name) else {}))
    for _ in range(3):
        after, proposals = strategy.decide(shot)
        assert (after, proposals) == strategy.decide(shot)
        check_safe(shot, vet(proposals, shot).accepted)
        assert all(p.reason and p.numbers and p.amount_bytes > 0 for p in proposals)
        strategy = after


def check_safe(shot: Snapshot, accepted: tuple[Spill | Move, ...]) -> None:
    """All rules, said in another way than the guard's own."""
    loads = {load.worker: load for load in shot.workers}
    spilling, relocating = Counter(shot.spilling), set(shot.moving)
    touched = Counter((move.space, group) for move in shot.moves for group in move.groups)
    incoming: Counter[int] = Counter()
    for move in shot.moves:
        incoming[move.receiver] += in_memory(loads[move.sender], move.space, move.groups)
    given_room: set[int] = set()
    for proposal in accepted:
        if isinstance(proposal, Spill):
            spilling[proposal.worker] += 1
            assert loads[proposal.worker].spillable
            sizes = [
                in_memory(loads[proposal.worker], space, groups)
                for space, groups in proposal.groups.items()
            ]
            assert proposal.amount_bytes == sum(sizes) > 0
            continue
        sender, receiver = loads[proposal.sender], loads[proposal.receiver]
        assert sender is not receiver
        assert sender.movable
        assert receiver.movable
        assert proposal.groups
        relocating |= {sender.worker, receiver.worker}
        touched.update((proposal.space, group) for group in proposal.groups)
        size = in_memory(sender, proposal.space, proposal.groups)
        assert proposal.amount_bytes == size
        incoming[receiver.worker] += size
        if size:
            given_room.add(receiver.worker)
        if shot.defer:
            table = sender.tables[proposal.space]
            assert not table.disk_bytes[np.isin(table.group, proposal.groups)].any()
    assert set(spilling.values()) <= {1}
    assert not set(spilling) & relocating
    assert set(touched.values()) <= {1}
    for worker in given_room:
        assert incoming[worker] <= loads[worker].room_bytes


def in_memory(load: WorkerLoad, space: int, groups: tuple[int, ...]) -> int:
    sizes = dict(
        zip(
            load.tables[space].group.tolist(),
            load.tables[space].memory_bytes.tolist(),
            strict=True,
        )
    )
    return sum(sizes[group] for group in groups)


@pytest.mark.parametrize("name", STRATEGIES)
@HEAVY
@given(
    shares=st.lists(st.integers(0, 9), min_size=2, max_size=5).filter(any),
    seed=st.integers(0, 2**32),
    memory=st.floats(0.1, 2),
    defer=st.booleans(),
)
def test_on_a_steady_cluster_strategies_come_to_rest(
    name: str, shares: list[int], seed: int, memory: float, defer: bool
) -> None:
    """With windows, a steady inflow and memory enough, moves cease; else they stay few.

    Those of Flux move a group per round, and may take longer; but no group goes to and fro.
    """
    random = np.random.default_rng(seed)
    inflow = random.lognormal(3, 0.5, 60).round() + 1
    state_bytes = inflow.sum() * ROW_BYTES / 0.1
    cluster = Cluster(
        np.array(shared_assignment(60, [share / sum(shares) for share in shares])),
        len(shares),
        make_strategy(name, **({"tau_ms": 20} if "tau_ms" in parameters_of(name) else {})),
        budget_bytes=int(state_bytes * memory / len(shares)),
        rate=random.lognormal(-6, 1, 60),
        kept=0.9,
        defer=defer,
    )
    early = sum(moved(cluster.run(150, inflow)).values())
    moves = moved(cluster.run(50, inflow))
    if memory < 1.5:
        assert sum(moves.values()) - early <= MOST_LATE_MOVES
    else:
        assert name.startswith("flux") or sum(moves.values()) == early
        assert max(moves.values(), default=0) <= 3, "to and fro"


def moved(cluster: Cluster) -> Counter[int]:
    """How often each group moved."""
    moves = [proposal for proposal in cluster.accepted if isinstance(proposal, Move)]
    return Counter(group for move in moves for group in move.groups)


@LAW
@given(st.integers(0, LARGEST_BYTES))
def test_a_size_survives_being_written_and_read(size_bytes: int) -> None:
    assert parse_size(show_size(size_bytes)) == size_bytes


@LAW
@given(st.lists(st.integers(0, 100), min_size=1, max_size=20).filter(any), st.integers(0, 500))
def test_groups_are_shared_to_within_one(weights: list[int], groups: int) -> None:
    text = ",".join(f"{weight / sum(weights):.12f}" for weight in weights)
    shares = parse_shares(text, len(weights))
    owners = shared_assignment(groups, shares)
    assert len(owners) == groups
    for worker, share in enumerate(shares):
        assert abs(owners.count(worker) - share * groups) < 1 + 1e-3
