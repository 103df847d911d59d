from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from braid.experiment.chained_streams import ChainedStreams
from braid.experiment.outcome import PlanChange
from braid.experiment.picture import draw_outcomes
from braid.experiment.zhu_migrations import (
    LENGTH_SETS,
    MOVING_STATE,
    PARALLEL_TRACK,
    LengthSet,
    growth,
    migration_effects,
    migration_length,
    work_ms,
)
from tests.unit.experiment.making import outcome

if TYPE_CHECKING:
    from pathlib import Path

    from braid.experiment.outcome import Outcome


def changed(way: str, lower: int, *of_change: int) -> Outcome:
    change = PlanChange(way, "(a ((b c) d))", lower, lower + len(of_change))
    return outcome([100] * lower + list(of_change) + [50] * 4, changes=(change,))


def test_work_is_what_batches_take_more_than_shortly_before() -> None:
    assert work_ms(changed(MOVING_STATE, 6, 400, 150, 100)) == 350
    assert work_ms(changed(MOVING_STATE, 6, 90)) == 0


def test_growth_is_a_power() -> None:
    assert growth([1, 2, 4], [7, 3, 24]) == pytest.approx(3)


def test_lengths_are_work_or_event_time(tmp_path: Path) -> None:
    streams = ChainedStreams((10,) * 4, (0.1,) * 3, 1.0, 9, 0.5)
    some = LengthSet("set 1", "W", "s", {1.0: streams, 2.0: streams})
    experiment = migration_length((some,))
    assert [trial.name for trial in experiment.trials[:2]] == [
        "set 1, W = 1 s: moving-state",
        "set 1, W = 1 s: parallel-track",
    ]
    assert experiment.trials[0].options["migrate_at"] == ["6:(a ((b c) d))"]
    outcomes = {
        "set 1, W = 1 s: moving-state": changed(MOVING_STATE, 6, 300),
        "set 1, W = 1 s: parallel-track": changed(PARALLEL_TRACK, 6, 100, 100),
        "set 1, W = 2 s: moving-state": changed(MOVING_STATE, 6, 900, 900),
        "set 1, W = 2 s: parallel-track": changed(PARALLEL_TRACK, 6, *[100] * 4),
    }
    rows = {what: ours for what, ours, _ in experiment.compare(outcomes)}
    assert rows["set 1, W = 2 s: parallel track"] == "2 s"
    assert rows["set 1, W = 2 s: moving state, work"] == "1600 ms"
    assert rows["set 1: moving state, the power of W"] == "3.0"
    assert rows["set 1: parallel track, the power of W"] == "1.0"
    draw_outcomes(experiment, outcomes, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_trials_of_all_sets_have_names_of_their_own() -> None:
    trials = migration_length(LENGTH_SETS).trials
    assert len({trial.name for trial in trials}) == len(trials) == 18


def test_effects_are_told_for_both_ways() -> None:
    streams = ChainedStreams((10,) * 4, (0.1,) * 3, 1.0, 9, 0.5)
    experiment = migration_effects("migration-low", "16.5", "hardly any", streams)
    outcomes = {
        "old plan": outcome([100] * 10),
        "new plan": outcome([100] * 10, joined_rows=(5,) * 10),
        MOVING_STATE: changed(MOVING_STATE, 5, 300),
        PARALLEL_TRACK: changed(PARALLEL_TRACK, 5, 150),
    }
    rows = {what: ours for what, ours, _ in experiment.compare(outcomes)}
    assert rows["rows of joined streams, old : new plan"] == "4.0"
    assert rows["moving-state: longest batch of it, usual ones"] == "300, 100 ms"
    assert rows["parallel-track: batches of it without results"] == "0"
