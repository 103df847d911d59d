"""A batch whose job is planned anew sends its rows where its own record says.

That is so in every stage of a move: when it has been computed, when its groups stop, while they
are on their way, and when they have arrived.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from braid.control.relocation import Stage
from braid.events import BatchRetried, Relocated
from braid.record.move import Move
from tests.driven import Driven
from tests.oracle.answers import counted, oracle
from tests.oracle.steady import CHAIN, CLIQUE
from tests.unit.state.making import quick_folder

if TYPE_CHECKING:
    from braid.control.control import Control
    from braid.events import Event

WINDOW_S, SECONDS, ON_THEIR_WAY = 3, 14, 2
"""Groups are on their way for some batches, in which rows wait for them."""

PLANS = {"one key": (CLIQUE, "(a b c d)"), "two keys, a tree": (CHAIN, "((a b) (c d))")}


def computed(control: Control, move: Move, batch: int) -> Control:
    """What is decided after a batch: some groups are to move."""
    return replace(control, relocation=control.relocation.compute(batch, [move]).next)


def moves_of(engine: Driven, second: int) -> Move:
    """Every other group of a worker's, of some space, to the other worker."""
    spaces = [s for s in range(len(engine.plan.rounds.spaces)) if engine.plan.may_wait(s)]
    turn = second // (ON_THEIR_WAY + 2)
    space, sender = spaces[turn % len(spaces)], turn % 2
    owners = engine.commit.assignments[space]
    own = [group for group, worker in enumerate(owners) if worker == sender]
    return Move(sender, 1 - sender, space, tuple(own[::2]))


@pytest.mark.parametrize("trigger", ["a stale job", "lost answers", "both"])
@pytest.mark.parametrize("name", PLANS)
def test_results_are_exact_though_every_batch_is_planned_anew(name: str, trigger: str) -> None:
    streams, tree = PLANS[name]
    plan = streams.plan(dict.fromkeys(streams.keys, WINDOW_S), tree)
    told: list[Event] = []
    arrived: list[dict[str, pa.Table]] = []
    with quick_folder() as folder:
        engine = Driven(plan, folder, workers=2)
        engine.engine.journal.listen(told.append)
        engine.cluster.loses_answers = trigger != "a stale job"
        for second, rows in enumerate(streams.rows(SECONDS)):
            arrived.append(rows)
            engine.batch(dict(enumerate(rows.values())), is_stale=trigger != "lost answers")
            if second % (ON_THEIR_WAY + 2) == 0:
                move = moves_of(engine, second)
                engine.engine.control = computed(engine.engine.control, move, second)
            elif second % (ON_THEIR_WAY + 2) == ON_THEIR_WAY + 1:
                for each in engine.commit.moves:
                    engine.arrive(each, with_files=second % 8 == 3)
        for each in engine.commit.moves:
            engine.arrive(each, with_files=True)
        engine.end()
        engine.checkpoint.close()
        whole = [pa.concat_tables(batch[s] for batch in arrived) for s in streams.keys]
        assert counted(engine.all_results()) == counted(oracle(plan.query, whole, "ts"))
    stages = [event.step for event in told if isinstance(event, Relocated)]
    assert set(stages) - {Stage.COMPUTE} == {stage.value for stage in Stage} - {Stage.COMPUTE}
    assert len(stages) >= 3 * (len(Stage) - 1)
    retried = [event.batch for event in told if isinstance(event, BatchRetried)]
    assert bool(retried) == (trigger != "a stale job")
    assert len(retried) in (0, engine.commit.batch + 1)
