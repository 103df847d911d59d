from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from braid.experiment import perform
from braid.experiment.chained_streams import ChainedStreams
from braid.experiment.setup import Experiment, Trial
from braid.model.errors import BraidError
from tests.unit.experiment.making import outcome

if TYPE_CHECKING:
    from pathlib import Path

STREAMS = ChainedStreams((10, 10), (0.5,), 1, 1)


def experiment(*trials: Trial) -> Experiment:
    first = replace(trials[0], name="before")
    return Experiment("some", "Some", "a paper", trials, lambda _: [], (), rehearsal=first)


def test_trials_on_equal_streams_read_the_same_files_and_must_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folders: dict[str, Path] = {}

    together: list[list[str]] = []

    def run(trials: list[tuple[Trial, Path]]) -> list[object]:
        together.append([trial.name for trial, _ in trials])
        assert all((folder / "b").is_dir() for _, folder in trials)
        folders.update({trial.name: folder for trial, folder in trials})
        return [outcome([1, 2], all_rows=trial.options["rows"]) for trial, _ in trials]

    monkeypatch.setattr(import_module("braid.experiment.perform"), "_run", run)
    trials = [
        Trial("one", STREAMS, options={"rows": 5}),
        Trial("same", replace(STREAMS), options={"rows": 5}),
        Trial("other", replace(STREAMS, window_s=2), options={"rows": 7}),
    ]
    seen: list[str] = []
    found = perform(experiment(*trials), lambda trial: seen.append(trial.name))
    assert seen == ["before", "one", "same", "other"]
    assert list(found) == ["one", "same", "other"], "nobody looks at a rehearsal"
    assert folders["one"] == folders["same"] != folders["other"]
    assert not folders["one"].exists()
    assert together == [["before"], ["one"], ["same"], ["other"]]
    perform(replace(experiment(*trials), in_turns=True))
    assert together[4:] == [["before"], ["one", "same", "other"]]
    wrong = replace(trials[1], options={"rows": 6})
    with pytest.raises(BraidError, match="some: of the same streams, 'same' has 6 results"):
        perform(experiment(trials[0], wrong))
