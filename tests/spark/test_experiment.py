"""The papers' experiments, in small: that they run, and what they leave."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from braid.experiment import EXPERIMENTS, perform
from braid.experiment.chained_streams import ChainedStreams
from braid.experiment.picture import draw_outcomes
from braid.experiment.zhu_migrations import migration_effects
from braid.experiment.zhu_replanning import replan_once, two_joins

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from braid.experiment import Experiment

pytestmark = pytest.mark.spark


def small(experiment: Experiment) -> Experiment:
    """The same with a tenth of the rows, a third as many batches, and budgets to match."""
    trials = (
        replace(
            trial,
            input=replace(trial.input, rate=300.0, seconds=9),
            options=trial.options | ({"memory": "60KB"} if "memory" in trial.options else {}),
        )
        for trial in experiment.trials
    )
    return replace(experiment, trials=tuple(trials))


CHAIN = ChainedStreams((200,) * 4, (0.02, 0.005, 0.005), 0.5, 3, 0.5)


@pytest.mark.parametrize(
    "experiment",
    [
        small(EXPERIMENTS["spill-policy"]),
        replace(migration_effects("migration-small", "", "", CHAIN, at_s=1), rehearsal=None),
        replace(replan_once(two_joins(200, 1, 4, 3, 1)), rehearsal=None),  # in turns
    ],
    ids=lambda each: each.name,
)
def test_an_experiment_gives_a_table_and_a_picture(
    spark: SparkSession, tmp_path: Path, experiment: Experiment
) -> None:
    outcomes = perform(experiment)
    assert list(outcomes) == [trial.name for trial in experiment.trials]
    assert len({outcome.all_rows for outcome in outcomes.values()}) == 1
    assert all(experiment.compare(outcomes))
    draw_outcomes(experiment, outcomes, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
