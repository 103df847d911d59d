"""Options of `braid run` that fail before Spark starts."""

from __future__ import annotations

import pytest

from braid.cli import main
from braid.cli.run import event_times_of
from braid.engine.folder import files


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        (
            "--trigger",
            "data threshold=0.3",
            "the option --trigger is called --replan-when now\n"
            '  hint: write --replan-when "data threshold=0.3"',
        ),
        (
            "--trigger",
            "10 seconds",
            "there is no option --trigger\n"
            '  hint: how often batches come: --interval "10 seconds"; when to look for a '
            "better plan: --replan-when data",
        ),
        (
            "--replan-when",
            "weekly",
            "unknown --replan-when 'weekly'\n  hint: known: data, memory, refined",
        ),
    ],
)
def test_when_to_replan_is_told_from_how_often_batches_come(
    option: str,
    text: str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = ["--stream", "a=a", "--out", "o", "--checkpoint", "c"]
    command = ["braid", "run", "-q", "SELECT", *places, option, text]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert f"error: {told}\n" in capsys.readouterr().err


def test_help_names_the_new_option_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["braid", "run", "--help"])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().out
    assert "--replan-when" in said
    assert "--trigger" not in said


def test_a_stream_of_any_name_may_have_an_event_time_of_its_own() -> None:
    streams = {"a-1": files("a"), "b": files("b")}
    assert event_times_of(["A-1=sent at", "at"], streams) == {"a-1": "sent at", "b": "at"}
    assert event_times_of(["if(x=1, s, t)"], streams) == dict.fromkeys(streams, "if(x=1, s, t)")
