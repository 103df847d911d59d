"""Options of `braid run` that fail before Spark starts."""

from __future__ import annotations

import pytest

from braid.cli import main


def test_the_old_name_of_replan_when_names_the_new_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--stream", "a=a", "--out", "o", "--checkpoint", "c"]
    command = ["braid", "run", "-q", "SELECT", *places, "--trigger", "data threshold=0.3"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert "error: the option --trigger is called --replan-when now" in said
    assert 'hint: write --replan-when "data threshold=0.3"' in said


def test_help_names_the_new_option_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["braid", "run", "--help"])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().out
    assert "--replan-when" in said
    assert "--trigger" not in said
