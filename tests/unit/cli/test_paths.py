from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
