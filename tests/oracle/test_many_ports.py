"""Many plans of many streams at once: exact as long as there is room, and refused beyond."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from braid.control.migration import UNPRICED, Migration, PlanChangeRequest
from braid.plan.wire import MOST_PORTS
from braid.record.plan_change import Way, begun
from tests.driven import Driven
from tests.unit.state.making import EPOCH, STREAM, equal_join, quick_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.plan.join_plan import JoinPlan

WINDOW_S = 4


def left_deep(names: Sequence[str]) -> str:
    """A binary tree that takes one stream after the other."""
    tree = names[0]
    for name in names[1:]:
        tree = f"({tree} {name})"
    return tree


def binary_trees(streams: int, count: int) -> list[str]:
    """Some binary trees, each beginning with another stream."""
    names = [f"s{number}" for number in range(streams)]
    return [left_deep(names[first:] + names[:first]) for first in range(count)]


def joined(streams: int, groups: int = 8) -> JoinPlan:
    return equal_join(streams, WINDOW_S * 1_000_000, groups=groups)


def rows(second: int, stream: int) -> pa.Table:
    """A stream's rows of a second: one of each key, and of two streams two."""
    keys = list(range(3)) * (2 if stream < 2 else 1)
    at = [EPOCH + dt.timedelta(seconds=second, milliseconds=stream)] * len(keys)
    return pa.table({"k": keys, "ts": at, "v": range(len(keys))}, schema=STREAM)


def results(
    plan: JoinPlan, changes: dict[int, Sequence[tuple[str, Way, list[int]]]], workers: int
) -> tuple[Counter[tuple[Any, ...]], int]:
    """All results, with changes of plan before some batches; and the most trees at once.

    In each batch every third stream has rows, so a result takes those of three.
    """
    streams, most = len(plan.streams), 0
    with quick_folder() as folder:
        engine = Driven(plan, folder, workers)
        for second in range(8):
            for text, way, some in changes.get(second, ()):
                assert engine.change(text, way, some)
                engine.filled_at_once = plan.groups
            mine = range(second % 3, streams, 3)
            engine.batch({stream: rows(second, stream) for stream in mine})
            most = max(most, len(engine.plan.texts))
        engine.checkpoint.close()
        found = engine.all_results().to_pylist()
    return Counter(tuple(row.values()) for row in found), most


@pytest.mark.parametrize("way", Way)
def test_two_binary_trees_of_18_streams_change_places(way: Way) -> None:
    first, second = binary_trees(18, 2)
    plan = joined(18)
    expected, _ = results(plan, {}, workers=2)
    assert expected
    found, trees = results(plan.replanned([first]), {3: [(second, way, [])]}, workers=2)
    assert trees == 2
    assert found == expected


def test_five_workers_have_binary_trees_of_8_streams_of_their_own() -> None:
    trees = binary_trees(8, 5)
    plan = joined(8, groups=10)
    expected, _ = results(plan, {}, workers=5)
    changes = {w + 1: [(trees[w], Way.MOVING_STATE, [w])] for w in range(1, 5)}
    found, most = results(plan.replanned([trees[0]]), changes, workers=5)
    assert most == 5
    assert found == expected


@pytest.mark.parametrize("way", Way)
def test_a_change_that_takes_too_many_ports_is_refused_and_the_run_goes_on(way: Way) -> None:
    streams = 25
    *trees, other = binary_trees(streams, MOST_PORTS // streams + 1)
    plan = joined(streams).replanned(trees)
    with quick_folder() as folder:
        engine = Driven(plan, folder, workers=1)
        engine.batch({0: rows(0, 0)})
        start = begun(engine.commit, engine.plan, other, way)
        assert start.obstacle.startswith(
            "too many plans at once: round 0 of the plan takes 150"
        )
        assert (start.both, start.commit) == (engine.plan, engine.commit)
        migration, draft = Migration(1, 10, way.value), engine.engine.draft
        request = migration.checked(plan.query, PlanChangeRequest(other, way.value))
        decided = migration.asked(request).observe(draft, 1, UNPRICED)
        told = [(event.step, event.reason) for event in decided.events]
        assert told == [("refused", start.obstacle)]
        assert decided.commands == ()
        assert decided.next.observe(draft, 1, UNPRICED).events == ()
        engine.batch({1: rows(1, 1)})
        engine.checkpoint.close()
