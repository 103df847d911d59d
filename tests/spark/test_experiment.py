"""The papers' experiments, in small: that they run, and what they leave."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from braid.experiment import EXPERIMENTS, perform
from braid.experiment.picture import draw_outcomes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from braid.experiment import Experiment

pytestmark = pytest.mark.spark


def small(experiment: Experiment) -> Experiment:
    """The same with a tenth of the rows, half as many batches, and budgets to match."""
    trials = (
        replace(trial, options=trial.options | {"memory": "60KB"})
        if "memory" in trial.options
        else trial
        for trial in experiment.trials
    )
    streams = replace(experiment.input, rate=300.0, seconds=15)
    return replace(experiment, input=streams, trials=tuple(trials))


@pytest.mark.parametrize("name", ["spill-policy"])
def test_an_experiment_gives_a_table_and_a_picture(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    experiment = small(EXPERIMENTS[name])
    outcomes = perform(experiment)
    assert list(outcomes) == [trial.name for trial in experiment.trials]
    assert len({outcome.all_rows for outcome in outcomes.values()}) == 1
    assert all(experiment.compare(outcomes))
    draw_outcomes(experiment, outcomes, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
