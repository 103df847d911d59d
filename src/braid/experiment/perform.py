"""Performing an experiment: streams are written once, and every trial runs on its own."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.experiment.outcome import Outcome
from braid.model.errors import BraidError
from braid.runtime import sinks
from braid.runtime.files import files
from braid.runtime.query import query

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from braid.experiment.setup import Experiment, Input, Trial


def perform(
    experiment: Experiment, on_trial: Callable[[Trial], None] = lambda trial: None
) -> dict[str, Outcome]:
    """Run all trials, one after the other; the outcomes by name.

    However a trial was run, its results are those of all others on the same streams; it is an
    error if they are not as many.
    """
    rehearsal = () if experiment.rehearsal is None else (experiment.rehearsal,)
    outcomes = {}
    folders: dict[Input, Path] = {}
    with tempfile.TemporaryDirectory(prefix="braid-experiment-") as place:
        for trial in (*rehearsal, *experiment.trials):
            on_trial(trial)
            if trial.input not in folders:
                folders[trial.input] = Path(place) / str(len(folders))
                trial.input.write(folders[trial.input])
            outcomes[trial.name] = _run(trial, folders[trial.input])
    _check_agreement(experiment, outcomes)
    return {trial.name: outcomes[trial.name] for trial in experiment.trials}


def _check_agreement(experiment: Experiment, outcomes: Mapping[str, Outcome]) -> None:
    first: dict[Input, Trial] = {}
    for trial in experiment.trials:
        other = first.setdefault(trial.input, trial)
        ours, theirs = (outcomes[each.name].all_rows for each in (trial, other))
        if ours != theirs:
            raise BraidError(
                f"{experiment.name}: of the same streams, {trial.name!r} has {ours:,} results "
                f"and {other.name!r} has {theirs:,}"
            )


def _run(trial: Trial, folder: Path) -> Outcome:
    streams: dict[str, Any] = {name: files(folder / name) for name in trial.input.streams}
    bound = query(trial.input.query, event_time="ts", **streams)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        running = bound.start(
            checkpoint=Path(place) / "checkpoint",
            sink=sinks.parquet(Path(place) / "out"),
            workers=trial.workers,
            groups=trial.input.groups,
            **trial.options,
        )
        running.await_termination()
        events = running.events()
    for event in events:
        if event["event"] == "migrate" and event["step"] == "refused":
            raise BraidError(f"{trial.name!r}: no change to {event['new']}: {event['reason']}")
    return Outcome.of(events)
