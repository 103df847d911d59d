from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from braid.cli import main
from braid.experiment import EXPERIMENTS

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
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)


def test_an_unknown_experiment_is_named_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert braid(monkeypatch, "experiment", "lazy-disc", "--out", str(out)) == 1
    assert "did you mean 'lazy-disk'?" in capsys.readouterr().err
    assert not out.exists()
