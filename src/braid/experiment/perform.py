"""Performing an experiment: its streams are written once, and every trial runs on them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from braid.experiment.outcome import Outcome
from braid.experiment.setup import PARTITIONS, STREAMS
from braid.experiment.streams import write_streams
from braid.runtime import sinks
from braid.runtime.files import files
from braid.runtime.query import query

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.experiment.setup import Experiment, Trial

QUERY = """\
SELECT a.k, a.v AS va, b.v AS vb, c.v AS vc
FROM a [UNBOUNDED], b [UNBOUNDED], c [UNBOUNDED]
WHERE a.k = b.k AND b.k = c.k"""


def perform(
    experiment: Experiment, on_trial: Callable[[Trial], None] = lambda trial: None
) -> dict[str, Outcome]:
    """Run all trials, one after the other; the outcomes by name."""
    outcomes = {}
    with tempfile.TemporaryDirectory(prefix="braid-experiment-") as name:
        folder = Path(name)
        write_streams(experiment.input.spec(), folder, experiment.input.seconds)
        for trial in experiment.trials:
            on_trial(trial)
            outcomes[trial.name] = _run(trial, folder)
    return outcomes


def _run(trial: Trial, folder: Path) -> Outcome:
    a, b, c = (files(folder / name) for name in STREAMS)
    bound = query(QUERY, event_time="ts", a=a, b=b, c=c)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        running = bound.start(
            checkpoint=Path(place) / "checkpoint",
            sink=sinks.parquet(Path(place) / "out"),
            workers=trial.workers,
            groups=PARTITIONS,
            **trial.options,
        )
        running.await_termination()
        return Outcome.of(running.events())
