"""A strategy that means no good: it spills, moves and asks for nonsense at random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from braid.control.proposal import Spill
from braid.record.move import Move

if TYPE_CHECKING:
    from braid.control.statistics import Snapshot, WorkerLoad


@dataclass(frozen=True)
class Hostile:
    """Proposals that depend on nothing but the seed and the number of the decision."""

    seed: int
    decisions: int = 0

    def decide(self, snapshot: Snapshot, /) -> tuple[Hostile, tuple[object, ...]]:
        """After every batch something for everyone."""
        chance = Random(f"{self.seed} {self.decisions}")
        wanted = [self._nonsense(chance)]
        for load in snapshot.workers:
            space = chance.choice(sorted(load.tables)) if load.tables else 0
            groups = self._some(chance, load, space)
            if chance.random() < 0.3:
                wanted.append(Spill(load.worker, {space: groups}, 0, "spite"))
            elif len(snapshot.workers) > 1:
                others = [w.worker for w in snapshot.workers if w.worker != load.worker]
                to = chance.choice(others)
                wanted.append(Move(load.worker, to, space, groups, 0, "spite"))
        chance.shuffle(wanted)
        return replace(self, decisions=self.decisions + 1), tuple(wanted)

    @staticmethod
    def _some(chance: Random, load: WorkerLoad, space: int) -> tuple[int, ...]:
        if space not in load.tables:
            return ()
        part = chance.choice([0.2, 0.5, 1])
        return tuple(g for g in load.tables[space].group.tolist() if chance.random() < part)

    @staticmethod
    def _nonsense(chance: Random) -> object:
        return chance.choice(
            [
                Spill(99, {0: (1,)}, 5),
                Spill(0, {77: (1,)}, 5),
                Move(0, 0, 0, (1,), 5),
                Move(0, 1, 0, (10**9,), 5),
                Move(0, -1, 0, (0,), 5),
                "spill everything",
                None,
            ]
        )
