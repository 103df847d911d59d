from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from braid.control.guard import Verdict, vet
from braid.control.proposal import Spill
from braid.record.move import Move
from tests.unit.control.making import snapshot, worker

SHOT = snapshot(
    worker(0, [10, 20, 30], disk_bytes=[0, 0, 5], budget_bytes=100),
    worker(1, [10, 0], budget_bytes=40),
    worker(2, [5], movable=False, spillable=False),
    worker(3, [50, 50]),
)
SPILL = Spill(0, {0: (0, 1)}, 30)
MOVE = Move(0, 1, 0, (0, 1), 30)


def only_refusal(verdict: Verdict) -> str:
    assert not verdict.accepted
    assert len(verdict.refused) == 1
    return verdict.refused[0].reason


@pytest.mark.parametrize("proposal", [SPILL, MOVE])
def test_what_is_safe_is_accepted_as_it_is(proposal: Spill | Move) -> None:
    assert vet([proposal], SHOT) == Verdict((proposal,), ())


@pytest.mark.parametrize(
    ("proposal", "reason"),
    [
        (replace(SPILL, worker=7), "there is no worker 7"),
        (replace(SPILL, groups={5: (0,)}), "there is no space 5"),
        (replace(SPILL, groups={0: (100,)}), "group 100 of space 0 is not worker 0's"),
        (replace(SPILL, groups={0: (0, 77)}), "group 77 of space 0 is not worker 0's"),
        (replace(SPILL, groups={}), "names nothing that is in memory"),
        (replace(SPILL, groups={0: ()}), "names nothing that is in memory"),
        (Spill(1, {0: (101,)}, 5), "names nothing that is in memory"),
        (replace(SPILL, groups={0: (0, 0)}), "named twice"),
        (Spill(2, {0: (200,)}, 5), "worker 2 cannot spill"),
        (replace(MOVE, sender=1, groups=(0,)), "worker 1 cannot send groups to itself"),
        (replace(MOVE, receiver=0), "worker 0 cannot send groups to itself"),
        (replace(MOVE, receiver=9), "there is no worker 9"),
        (replace(MOVE, groups=()), "names no group"),
        (replace(MOVE, groups=(100,)), "group 100 of space 0 is not worker 0's"),
        (replace(MOVE, space=1), "there is no space 1"),
        (replace(MOVE, receiver=2), "worker 2 cannot take part"),
        (replace(MOVE, groups=(2,)), "group 2 of space 0 has a part on disk"),
        (Move(3, 1, 0, (300,), 50), "50 bytes would overflow worker 1"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_the_reason(
    proposal: Spill | Move, reason: str
) -> None:
    assert reason in only_refusal(vet([proposal], SHOT))


@pytest.mark.parametrize(
    "proposal",
    [
        None,
        42,
        "spill",
        Spill,
        object(),
        {"worker": 0},
        replace(SPILL, worker="0"),
        replace(SPILL, worker=True),
        replace(SPILL, worker=0.0),
        replace(SPILL, worker=10**30),
        replace(SPILL, groups=None),
        replace(SPILL, groups=(0, 1)),
        replace(SPILL, groups={0: "01"}),
        replace(SPILL, groups={0: (0.0,)}),
        replace(SPILL, groups={"0": (0,)}),
        replace(MOVE, groups=None),
        replace(MOVE, groups=({},)),
        replace(MOVE, space=[]),
    ],
)
def test_what_is_of_a_wrong_type_is_refused(proposal: Any) -> None:
    assert only_refusal(vet([proposal], SHOT))


def test_even_what_cannot_be_read_is_refused() -> None:
    class Bomb(dict[int, tuple[int, ...]]):
        def items(self) -> Any:
            raise RuntimeError("boom")

    def torn() -> Any:
        yield SPILL
        raise ValueError("no more")

    assert "RuntimeError" in only_refusal(vet([replace(SPILL, groups=Bomb())], SHOT))
    verdict = vet(torn(), SHOT)
    assert verdict.accepted == (SPILL,)
    assert "ValueError" in verdict.refused[0].reason
    assert "TypeError" in only_refusal(vet(None, SHOT))  # type: ignore[arg-type]


def test_what_is_accepted_is_a_plain_copy() -> None:
    numbers: Any = {"share": np.float64(0.5), "bad": float("nan"), 3: 4, "text": "x"}
    hostile = Spill(np.int64(0), {np.int64(0): np.array([1, 0])}, -7, object(), numbers)  # type: ignore[arg-type]
    assert vet([hostile], SHOT).accepted == (Spill(0, {0: (1, 0)}, 30, "", {"share": 0.5}),)


def test_a_worker_does_not_spill_and_relocate_at_once() -> None:
    assert vet([SPILL, MOVE], SHOT).accepted == (SPILL,)
    assert vet([MOVE, SPILL], SHOT).accepted == (MOVE,)
    receiver_spills = Spill(1, {0: (100,)}, 10)
    assert vet([MOVE, receiver_spills], SHOT).accepted == (MOVE,)
    assert vet([SPILL, SPILL], SHOT).accepted == (SPILL,)


def test_what_is_in_flight_is_left_alone() -> None:
    moving = replace(SHOT, moves=(Move(0, 3, 0, (0,)),))
    assert "moving already" in only_refusal(vet([MOVE], moving))
    assert "relocation" in only_refusal(vet([replace(SPILL, groups={0: (1,)})], moving))
    assert "sends groups" in only_refusal(vet([replace(MOVE, groups=(1,))], moving))
    spilling = replace(SHOT, spilling=frozenset({1}))
    assert "worker 1 spills" in only_refusal(vet([MOVE], spilling))
    assert "spills already" in only_refusal(vet([Spill(1, {0: (100,)}, 10)], spilling))


def test_a_group_is_moved_once_and_room_is_given_once() -> None:
    assert len(vet([MOVE, MOVE], SHOT).accepted) == 1
    two = [Move(0, 1, 0, (1,), 20), Move(3, 1, 0, (300,), 50)]
    assert vet(two, SHOT).accepted == (two[0],), "20 of 30 bytes are spoken for"
    assert (
        vet(two[1:], replace(SHOT, fixed=frozenset({0})))
        .refused[0]
        .reason.startswith("groups of space 0 stay")
    )
    tight = replace(SHOT, moves=(Move(0, 1, 0, (1,)),))
    assert "room for 10" in only_refusal(vet([Move(3, 1, 0, (301,), 50)], tight)), (
        "what is on its way counts"
    )


def test_groups_on_disk_may_move_if_they_are_probed_there() -> None:
    probed = replace(SHOT, defer=False)
    move = Move(0, 3, 0, (2,), 30)
    assert vet([move], probed).accepted == (move,)
