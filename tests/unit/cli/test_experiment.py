from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from braid.cli import main
from braid.experiment import EXPERIMENTS, STUDIES

if TYPE_CHECKING:
    from pathlib import Path


def braid(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """What the command returns."""
    monkeypatch.setattr("sys.argv", ["braid", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_experiments_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert braid(monkeypatch, "experiment", "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*EXPERIMENTS, *STUDIES]


def test_an_unknown_experiment_is_named_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert braid(monkeypatch, "experiment", "lazy-disc", "--out", str(out)) == 1
    assert "did you mean 'lazy-disk'?" in capsys.readouterr().err
    assert not out.exists()


def test_a_study_is_made_without_spark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refuse(master: str) -> None:
        raise AssertionError("Spark is not needed")

    monkeypatch.setattr("braid.cli.experiment.start_spark", refuse)
    monkeypatch.setattr(
        "sys.argv", ["braid", "experiment", "optimizer-sets", "--out", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert "optimizer-sets.png" in capsys.readouterr().out
    assert (tmp_path / "optimizer-sets.png").read_bytes().startswith(b"\x89PNG")
    assert (
        "| set 4: plans between the two | ((a b) c d) |"
        in (tmp_path / "optimizer-sets.md").read_text()
    )
