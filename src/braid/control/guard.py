"""What of a strategy's proposals is safe to do.

Whatever a strategy asks for, and of whatever types, `vet` gives an answer. What it accepts is a
plain copy that names each group once; all else is refused, with a sentence that says why.
Earlier proposals come first: a later one must fit in with what was accepted before it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from braid.control.proposal import Spill
from braid.record.move import Move

if TYPE_CHECKING:
    from collections.abc import Iterable

    from braid.control.proposal import Proposal
    from braid.control.statistics import GroupTable, Snapshot, WorkerLoad

_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """A proposal that will not be done, and why."""

    proposal: object
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done, in order, and what is not."""

    accepted: tuple[Proposal, ...] = ()
    refused: tuple[Refusal, ...] = ()


def vet(proposals: Iterable[object], snapshot: Snapshot) -> Verdict:
    """Part proposals into those that are safe together and those that are refused."""
    accepted: list[Proposal] = []
    refused: list[Refusal] = []
    plan = _Plan(snapshot)
    try:
        for proposal in proposals:
            try:
                accepted.append(plan.admit(proposal))
            except _Refused as refusal:
                refused.append(Refusal(proposal, str(refusal)))
            except Exception as error:  # a proposal may be any object, with any behaviour
                refused.append(Refusal(proposal, _unreadable(error)))
    except Exception as error:  # and so may be what holds the proposals
        refused.append(Refusal(proposals, _unreadable(error)))
    return Verdict(tuple(accepted), tuple(refused))


class _Refused(Exception):
    """Raised with the sentence that says why."""


@dataclass(slots=True)
class _Plan:
    """The snapshot with what was accepted so far."""

    snapshot: Snapshot
    loads: dict[int, WorkerLoad] = field(init=False)
    spilling: set[int] = field(init=False)
    relocating: set[int] = field(init=False)
    moving: set[tuple[int, int]] = field(init=False)
    sending: set[tuple[int, int]] = field(init=False)
    incoming: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with what is in flight."""
        snapshot = self.snapshot
        self.loads = {load.worker: load for load in snapshot.workers}
        self.spilling = set(snapshot.spilling)
        self.relocating = set(snapshot.moving)
        self.moving = {(move.space, group) for move in snapshot.moves for group in move.groups}
        self.sending = {(move.space, move.sender) for move in snapshot.moves}
        self.incoming = {}
        for move in snapshot.moves:
            sender = self.loads.get(move.sender)
            table = sender.tables.get(move.space) if sender is not None else None
            if table is not None:
                self._expect(move.receiver, _memory_of(table, move.groups))

    def admit(self, proposal: object) -> Proposal:
        """A plain copy of a proposal, if it is safe."""
        if type(proposal) is Spill:
            return self._admit_spill(proposal)
        if type(proposal) is Move:
            return self._admit_relocation(proposal)
        raise _Refused(f"a {type(proposal).__name__} is neither a spill nor a relocation")

    def _admit_spill(self, spill: Spill) -> Spill:
        load = self._load(spill.worker)
        number = load.worker
        if not isinstance(spill.groups, Mapping):
            raise _Refused("the groups of a spill must be given by space")
        groups = {_whole(s, "a space"): _ids(ids) for s, ids in spill.groups.items()}
        groups = {space: ids for space, ids in groups.items() if ids}
        amount = sum(self._owned(load, space, ids) for space, ids in groups.items())
        if not amount:
            raise _Refused(f"a spill on worker {number} names nothing that is in memory")
        if not load.spillable:
            raise _Refused(f"worker {number} cannot spill at the moment")
        if number in self.relocating:
            raise _Refused(f"worker {number} takes part in a relocation, and cannot spill")
        if number in self.spilling:
            raise _Refused(f"worker {number} spills already")
        safe = Spill(number, groups, amount, _text(spill.reason), _figures(spill.numbers))
        self.spilling.add(number)
        return safe

    def _admit_relocation(self, move: Move) -> Move:
        sender, receiver = self._load(move.sender), self._load(move.receiver)
        space, groups = _whole(move.space, "a space"), _ids(move.groups)
        if sender is receiver:
            raise _Refused(f"worker {sender.worker} cannot send groups to itself")
        if not groups:
            raise _Refused("a relocation names no group")
        amount = self._owned(sender, space, groups)
        if space in self.snapshot.fixed:
            raise _Refused(
                f"groups of space {space} stay: its rows come in order, or its join is not all "
                "in one space"
            )
        if (space, sender.worker) in self.sending:
            raise _Refused(f"worker {sender.worker} sends groups of space {space} already")
        for load in (sender, receiver):
            if not load.movable:
                raise _Refused(f"worker {load.worker} cannot take part in relocations now")
            if load.worker in self.spilling:
                raise _Refused(f"worker {load.worker} spills, and cannot relocate")
        if self.snapshot.defer:
            table = sender.tables[space]
            pinned = table.disk_bytes[table.places(groups)] > 0
            if pinned.any():
                group = groups[int(np.argmax(pinned))]
                raise _Refused(f"group {group} of space {space} has a part on disk, and stays")
        room = receiver.room_bytes - self.incoming.get(receiver.worker, 0)
        if amount and amount > room:
            raise _Refused(
                f"{amount} bytes would overflow worker {receiver.worker}, "
                f"which has room for {max(0, int(room))}"
            )
        reason, numbers = _text(move.reason), _figures(move.numbers)
        safe = Move(sender.worker, receiver.worker, space, groups, amount, reason, numbers)
        self.moving.update((space, group) for group in groups)
        self.sending.add((space, sender.worker))
        self.relocating |= {sender.worker, receiver.worker}
        self._expect(receiver.worker, amount)
        return safe

    def _load(self, worker: Any) -> WorkerLoad:
        number = _whole(worker, "a worker")
        if number not in self.loads:
            raise _Refused(f"there is no worker {number}")
        return self.loads[number]

    def _owned(self, load: WorkerLoad, space: int, groups: tuple[int, ...]) -> int:
        """Bytes in memory of groups that are all the worker's own, and at rest."""
        if not any(space in other.tables for other in self.loads.values()):
            raise _Refused(f"there is no space {space}")
        table = load.tables.get(space)
        places = table.places(groups) if table is not None else np.full(len(groups), -1)
        if table is None or (places < 0).any():
            group = groups[int(np.argmin(places))]
            raise _Refused(f"group {group} of space {space} is not worker {load.worker}'s")
        for group in groups if self.moving else ():
            if (space, group) in self.moving:
                raise _Refused(f"group {group} of space {space} is moving already")
        return int(table.memory_bytes[places].sum())

    def _expect(self, receiver: int, amount: int) -> None:
        self.incoming[receiver] = self.incoming.get(receiver, 0) + amount


def _memory_of(table: GroupTable, groups: tuple[int, ...]) -> int:
    places = table.places(groups)
    return int(table.memory_bytes[places[places >= 0]].sum())


def _whole(value: Any, what: str) -> int:
    """A whole number that fits 64 bits, as Python has it."""
    if isinstance(value, bool | np.bool_):
        raise _Refused(f"{what} must be a whole number, not {bool(value)}")
    try:
        number = int(operator.index(value))
    except TypeError:
        kind = type(value).__name__
        raise _Refused(f"{what} must be a whole number, not a {kind}") from None
    if not -(2**63) <= number < 2**63:
        raise _Refused(f"{what} must fit 64 bits")
    return number


def _ids(groups: Any) -> tuple[int, ...]:
    """Group numbers, each once."""
    if isinstance(groups, str | bytes) or not isinstance(groups, tuple | list | np.ndarray):
        raise _Refused(f"groups must be a tuple of numbers, not a {type(groups).__name__}")
    ids = tuple(_whole(group, "a group") for group in groups)
    if len(set(ids)) != len(ids):
        raise _Refused("a group is named twice")
    return ids


def _text(reason: Any) -> str:
    return reason[:_LONGEST_REASON] if type(reason) is str else ""


def _figures(numbers: Any) -> dict[str, float]:
    """What of the numbers can be written in an event."""
    if not isinstance(numbers, Mapping):
        return {}
    kept = {}
    for name, value in numbers.items():
        if type(name) is str and isinstance(value, int | float | np.number):
            number = float(value)
            if math.isfinite(number):
                kept[name] = number
    return kept


def _unreadable(error: Exception) -> str:
    return f"it could not be read: {type(error).__name__}"
