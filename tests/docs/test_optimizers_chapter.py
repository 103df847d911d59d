"""The examples of the chapter on optimizers print what it says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from braid import optimize
from braid.cli import main

CHAPTER = (Path(__file__).parents[2] / "docs" / "optimizers.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", CHAPTER, re.DOTALL)


def test_the_examples_print_what_stands_below_them(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for code in blocks("python"):
        exec(code, names)
    assert capsys.readouterr().out == "".join(blocks("text"))
    assert len(blocks("text")) == 4


def test_the_file_has_the_graph_and_the_command_finds_the_plan(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[0], names)
    (text,), (command,) = blocks("json"), blocks("sh")
    assert optimize.parse_graph(text) == names["graph"]
    (tmp_path / "graph.json").write_text(json.dumps(json.loads(text)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", shlex.split(command))
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert "((a b) c d)" in capsys.readouterr().out
    assert (tmp_path / "plans.png").stat().st_size


def test_all_that_the_chapter_names_is_there() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", CHAPTER, re.MULTILINE))
    assert {"mjoin_init", "bjtree_init", "exhaustive", "skyline"} <= named
    for name in named:
        place = optimize if name[0].islower() else optimize.timing
        assert callable(getattr(place, name))
