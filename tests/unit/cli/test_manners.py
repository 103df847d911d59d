from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import braid
from braid.cli import main

if TYPE_CHECKING:
    from pathlib import Path

RUN = {"--stream": "a=in", "--out": "o", "--checkpoint": "c", "-q": "SELECT a.k FROM a"}


@pytest.mark.parametrize(
    ("command", "options"),
    [
        *(
            ("run", RUN | {option: f"{before}s3a://bucket/x"})
            for option, before in {
                "--stream": "a=",
                "--out": "",
                "--checkpoint": "",
                "--late": "",
                "--events": "",
            }.items()
        ),
        ("demo", {"--events": "s3a://bucket/x", "--batches": "1", "--master": "nowhere"}),
        ("explain", {"--draw": "s3a://bucket/x", "--stream": "a=in"}),
        ("optimize", {"--out": "s3a://bucket/x"}),
        ("generate", {"--out": "s3a://bucket/x"}),
        ("experiment", {"--out": "s3a://bucket/x"}),
    ],
)
def test_a_path_of_an_object_store_is_refused_and_nothing_is_made_of_it(
    command: str,
    options: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [word for option in options.items() for word in option]
    monkeypatch.setattr("sys.argv", ["braid", command, *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert "s3a://bucket/x" in said
    assert "hint: " in said
    assert not list(tmp_path.iterdir())


def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> tuple[object, str]:
    """How the command ends, and what it says."""
    monkeypatch.setattr("sys.argv", ["braid", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit) as end:
        main()
    told = capsys.readouterr()
    return end.value.code, told.out + told.err


def test_the_command_says_its_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(monkeypatch, capsys, "--version") == (0, f"braid {braid.__version__}\n")


def test_a_demo_without_batches_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = said(monkeypatch, capsys, "demo", "--batches", 0)
    assert code == 1
    assert "0 batches" in told
    assert "hint: give --batches 1 or more" in told


@pytest.mark.parametrize("rate", [0, -1, "nan", "inf"])
def test_a_demo_at_no_rate_is_refused(
    rate: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = said(monkeypatch, capsys, "demo", "--batches", 2, "--rate", rate)
    assert code == 1
    assert f"at {rate} offers per second" in told
    assert "hint: give a --rate above 0" in told


def test_a_demo_without_a_folder_for_its_events_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events = tmp_path / "none" / "e.jsonl"
    code, told = said(monkeypatch, capsys, "demo", "--batches", 1, "--events", events)
    assert code == 1
    assert told.startswith(f"error: cannot write events to {events}")


def test_a_picture_may_be_named_by_a_uri(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "0.csv").write_text("k,ts\n1,2024-01-01T00:00:00Z\n")
    query = "SELECT a.k FROM a [RANGE 1 DAY], a [RANGE 1 DAY] AS b WHERE a.k = b.k"
    words = ["-q", query, "--stream", f"a={tmp_path}", "--draw", f"file://{tmp_path}/plan.svg"]
    code, told = said(monkeypatch, capsys, "explain", *words)
    assert code == 0, told
    assert (tmp_path / "plan.svg").stat().st_size


def test_a_missing_folder_for_events_is_named_before_spark_starts_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "0.csv").write_text("k,ts\n")
    missing = tmp_path / "none"
    options = RUN | {
        "--stream": f"a={tmp_path}",
        "-q": "SELECT a.k FROM a [RANGE 1 SECOND], a [RANGE 1 SECOND] AS b WHERE a.k = b.k",
        "--events": str(missing / "e.jsonl"),
        "--master": "nowhere",  # which Spark would say first
    }
    words = [word for option in options.items() for word in option]
    code, told = said(monkeypatch, capsys, "run", *words)
    assert code == 1
    assert f"there is no folder {missing}" in told
    assert "hint: " in told
    assert not missing.exists()
