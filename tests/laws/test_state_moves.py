"""Whatever moves between workers, however often and whatever is lost meanwhile: exact results.

Groups move as in production: detached from one worker's real ladders, attached to another's,
and committed; the log has their rows all the while.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from braid.state.log import LogFile
from braid.state.store import MEMORY
from braid.state.upkeep import Upkeep, attach, open_ladder
from tests.engine import Engine
from tests.oracle.answers import counted, oracle
from tests.unit.state.making import equal_join, generator, quick_folder, stream_rows

if TYPE_CHECKING:
    from braid.join.plan import JoinPlan

GROUPS = 16
BATCH_MS = 100
LAW = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)


@dataclass(frozen=True)
class Move:
    group: int
    to: int  # modulo the number of workers


@dataclass(frozen=True)
class Restart:
    workers: int


@dataclass(frozen=True)
class LoseRuns:
    share: float


Happening = Move | Restart | LoseRuns
happenings = st.one_of(
    st.builds(Move, st.integers(0, GROUPS - 1), st.integers(0, 5)),
    st.builds(Restart, st.integers(1, 5)),
    st.builds(LoseRuns, st.sampled_from([0.3, 1.0])),
)
histories = st.lists(st.lists(happenings, max_size=4), min_size=3, max_size=7)


@settings(LAW)
@given(
    history=histories,
    streams=st.integers(2, 3),
    workers=st.integers(1, 4),
    window_ms=st.sampled_from([50, 150, 400, 5000]),
    seed=st.integers(0, 2**32),
)
def test_groups_that_move_between_workers_leave_results_exact(
    history: list[list[Happening]], streams: int, workers: int, window_ms: int, seed: int
) -> None:
    random = generator(seed, len(history), sum(map(len, history)), streams, workers, window_ms)
    plan = equal_join(streams, window_ms * 1000, groups=GROUPS, lateness_us=BATCH_MS * 1000)
    arrived: list[dict[int, pa.Table]] = []
    with quick_folder() as folder:
        engine = Engine(plan, folder, workers)
        for number, events in enumerate(history):
            for event in events:
                engine = happen(engine, event, random)
            arrived.append(next_rows(plan, random, number))
            engine.batch(arrived[-1])
            assert_nothing_is_held_twice(engine, arrived)
        rows = tuple(pa.concat_tables(batch[s] for batch in arrived) for s in plan.streams)
        assert counted(engine.all_results()) == counted(oracle(plan.query, rows, "ts"))
        engine.checkpoint.close()


def next_rows(plan: JoinPlan, random: np.random.Generator, number: int) -> dict[int, pa.Table]:
    lower = number * BATCH_MS
    return {
        stream: stream_rows(random, int(random.integers(0, 30)), lower, lower + BATCH_MS, 12)
        for stream in plan.streams
    }


def happen(engine: Engine, event: Happening, random: np.random.Generator) -> Engine:
    match event:
        case Move(group, to):
            move_group(engine, group, to % engine.workers)
        case Restart(workers):
            return engine.restart(workers)
        case LoseRuns(share):
            for path in sorted(engine.folder.glob("memory/*/*")):
                if random.random() < share:
                    path.unlink()
    return engine


def move_group(engine: Engine, group: int, to: int) -> None:
    """Relocate one group between two batches, and commit that."""
    commit, plan = engine.commit, engine.plan
    (assigned,) = commit.assignments
    giver_id = assigned[group]
    if giver_id == to:
        return
    giver, moving = _upkeep(engine, giver_id, group), np.arange(plan.groups) == group
    ladders = [list(of_worker) for of_worker in commit.ladders]
    for stream in plan.streams:
        horizon_us = plan.horizon_us(plan.rounds.states[stream], commit.watermark_us)
        opened = open_ladder(giver.store, ladders[giver_id][stream], horizon_us)
        left, taken = giver.detach(opened, moving, horizon_us, MEMORY)
        ladders[giver_id][stream] = tuple(pair.run for pair in left)
        if taken is not None:
            ladders[to][stream] = attach(ladders[to][stream], taken.run, moving)
    giver.log.write()
    assignment = tuple(to if g == group else w for g, w in enumerate(assigned))
    engine.commit = replace(
        commit, assignments=(assignment,), ladders=tuple(map(tuple, ladders))
    )
    engine.checkpoint.write(engine.commit)
    engine.checkpoint.sweep(engine.commit)


def _upkeep(engine: Engine, worker: int, group: int) -> Upkeep:
    moves = len(list(engine.folder.glob("moves/*")))
    (engine.folder / "moves").mkdir(exist_ok=True)
    (engine.folder / "moves" / str(moves)).touch()
    token = f"move-{moves}-{group}-{worker}"
    return Upkeep(
        engine.stores(worker)[0], LogFile(engine.checkpoint.log / f"{token}.log"), token
    )


def assert_nothing_is_held_twice(engine: Engine, arrived: list[dict[int, pa.Table]]) -> None:
    for stream in engine.plan.streams:
        held = sum(run.rows for worker in engine.commit.ladders for run in worker[stream])
        assert held <= sum(batch[stream].num_rows for batch in arrived)
