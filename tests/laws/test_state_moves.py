"""Whatever moves between workers, however often and whatever is lost meanwhile: exact results.

Groups move as in production: taken out of one worker's real ladders by a batch, given to
another worker some batches later, while their rows wait; the log has it all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.driven import Driven
from tests.oracle.answers import counted, oracle
from tests.unit.state.making import equal_join, generator, quick_folder, stream_rows

if TYPE_CHECKING:
    import numpy as np

    from braid.plan.join_plan import JoinPlan

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
class Resized:
    workers: int


@dataclass(frozen=True)
class LoseRuns:
    share: float


@dataclass(frozen=True)
class Arrive:
    with_files: bool


Happening = Move | Arrive | Restart | Resized | LoseRuns
happenings = st.one_of(
    st.builds(Move, st.integers(0, GROUPS - 1), st.integers(0, 5)),
    st.builds(Arrive, st.booleans()),
    st.builds(Restart, st.integers(1, 5)),
    st.builds(Resized, st.integers(1, 5)),
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
        engine = Driven(plan, folder, workers)
        for number, events in enumerate(history):
            for event in events:
                engine = happen(engine, event, random)
            arrived.append(next_rows(plan, random, number))
            engine.batch(arrived[-1])
            assert_nothing_is_held_twice(engine, arrived)
        engine.batch({})
        arrive(engine, with_files=True)
        engine.batch({})
        assert not any(engine.commit.waiting)
        rows = tuple(pa.concat_tables(batch[s] for batch in arrived) for s in plan.streams)
        assert counted(engine.all_results()) == counted(oracle(plan.query, rows, "ts"))
        engine.checkpoint.close()


def next_rows(plan: JoinPlan, random: np.random.Generator, number: int) -> dict[int, pa.Table]:
    lower = number * BATCH_MS
    return {
        stream: stream_rows(random, int(random.integers(0, 30)), lower, lower + BATCH_MS, 12)
        for stream in plan.streams
    }


def happen(engine: Driven, event: Happening, random: np.random.Generator) -> Driven:
    match event:
        case Move(group, to):
            move_group(engine, group, to % engine.workers)
        case Arrive(with_files):
            arrive(engine, with_files)
        case Restart(workers):
            return engine.restart(workers)
        case Resized(workers):
            if not engine.commit.moves:
                engine.resize(workers)
        case LoseRuns(share):
            for path in sorted(engine.folder.glob("[md]*/*/*")):
                if random.random() < share:
                    path.unlink()
    return engine


def move_group(engine: Driven, group: int, to: int) -> None:
    """Send one group away with the next batch, unless its worker sends another one."""
    giver = engine.commit.assignments[0][group]
    busy = {move.sender for move in engine.commit.moves if move.runs is None}
    if giver != to and giver not in busy and not is_moving(engine, group):
        engine.move(0, ((group, group + 1),), giver, to)


def is_moving(engine: Driven, group: int) -> bool:
    return any(move.marks(GROUPS)[group] for move in engine.commit.moves)


def arrive(engine: Driven, with_files: bool) -> None:
    for move in engine.commit.moves:
        if move.runs is not None:
            engine.arrive(move, with_files=with_files)


def assert_nothing_is_held_twice(engine: Driven, arrived: list[dict[int, pa.Table]]) -> None:
    for stream in engine.plan.streams:
        held = sum(run.rows for worker in engine.commit.ladders for run in worker[stream])
        assert held <= sum(batch[stream].num_rows for batch in arrived)
