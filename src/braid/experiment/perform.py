"""Performing an experiment: streams are written once, and trials run one by one or in turns."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.engine.folder import files
from braid.experiment.outcome import Outcome
from braid.experiment.turns import run_in_turns
from braid.front import sinks
from braid.front.query import query
from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from braid.experiment.setup import Experiment, Input, Trial
    from braid.front.run import Run


def perform(
    experiment: Experiment, on_trial: Callable[[Trial], None] = lambda trial: None
) -> dict[str, Outcome]:
    """Run all trials; the outcomes by name.

    However a trial was run, its results are those of all others on the same streams; it is an
    error if they are not as many.
    """
    rehearsal = () if experiment.rehearsal is None else ((experiment.rehearsal,),)
    alone = ((trial,) for trial in experiment.trials)
    together = (experiment.trials,) if experiment.in_turns else alone
    outcomes: dict[str, Outcome] = {}
    folders: dict[Input, Path] = {}
    with tempfile.TemporaryDirectory(prefix="braid-experiment-") as place:
        for trials in (*rehearsal, *together):
            for trial in trials:
                on_trial(trial)
                if trial.input not in folders:
                    folders[trial.input] = Path(place) / str(len(folders))
                    trial.input.write(folders[trial.input])
            found = _run([(trial, folders[trial.input]) for trial in trials])
            outcomes |= zip((trial.name for trial in trials), found, strict=True)
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


def _run(trials: Sequence[tuple[Trial, Path]]) -> list[Outcome]:
    """Run trials by turns, each on the streams in a folder."""
    with tempfile.TemporaryDirectory(dir=trials[0][1]) as place:
        everyone = run_in_turns(
            [
                partial(_start, trial, folder, Path(place) / str(number))
                for number, (trial, folder) in enumerate(trials)
            ]
        )
    outcomes = []
    for (trial, _), turns in zip(trials, everyone, strict=True):
        events = turns.run.events()
        for event in events:
            if event["event"] == "migrate" and event["step"] == "refused":
                raise BraidError(
                    f"{trial.name!r}: no change to {event['new']}: {event['reason']}"
                )
        outcomes.append(Outcome.of(events, turns.taken_ms))
    return outcomes


def _start(trial: Trial, folder: Path, place: Path) -> Run:
    streams: dict[str, Any] = {name: files(folder / name) for name in trial.input.streams}
    return query(trial.input.query, event_time="ts", **streams).start(
        checkpoint=place / "checkpoint",
        sink=sinks.parquet(place / "out"),
        workers=trial.workers,
        groups=trial.input.groups,
        **trial.options,
    )
