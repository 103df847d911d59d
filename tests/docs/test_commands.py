"""Every command that the documents name is there, and takes the options they give it."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bench.systems import PEERS_STAMP, SYSTEMS
from braid.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "examples/README.md")),
    *(ROOT / "docs").rglob("*.md"),
]
MAKEFILE = (ROOT / "Makefile").read_text()
OUR_MODULE = re.compile(r"-m ((?:bench|examples)[.\w]*)")


def commands(first_word: str) -> list[str]:
    """Commands that begin with a word, from spans of code and from blocks of shell."""
    found = []
    for page in PAGES:
        text = page.read_text()
        blocks = re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL)
        lines = [
            line.partition("  #")[0].strip()
            for language, block in blocks
            if language in ("", "sh")
            for line in block.splitlines()
        ]
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        spans = (" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose))
        found += [each for each in (*lines, *spans) if each.split()[:1] == [first_word]]
    return sorted(set(found))


def phony_targets() -> list[str]:
    (names,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    return names.split()


def planned(target: str) -> str:
    """The commands by which make would make a target, if nothing were there yet."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("target", [*phony_targets(), PEERS_STAMP])
def test_make_knows_how_and_all_that_its_recipe_names_is_there(target: str) -> None:
    recipe = planned(target)
    assert "Nothing to be done" not in recipe, "a file of that name is no rule"
    for path in re.findall(r"(?<![\w./-])((?:tools|tests|bench|examples)/[\w./-]+)", recipe):
        assert (ROOT / path).exists(), path
    for module in OUR_MODULE.findall(recipe):
        assert find_spec(module) is not None, module


def test_the_documents_name_targets_that_are_there() -> None:
    named = {command.split()[1] for command in commands("make")}
    assert {"demo", "test", "bench", "nexmark", "flights"} <= named <= set(phony_targets())


def help_of(module: str, patch: pytest.MonkeyPatch, output: pytest.CaptureFixture[str]) -> str:
    if hasattr(importlib.import_module(module), "__path__"):
        module = f"{module}.__main__"
    patch.setattr("sys.argv", [module, "--help"])
    with pytest.raises(SystemExit) as end:
        importlib.import_module(module).main()
    assert not end.value.code
    return output.readouterr().out


@pytest.mark.parametrize("command", commands("python"))
def test_a_module_that_the_documents_run_takes_the_options_they_give_it(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, dash_m, module, *given = shlex.split(command)
    assert dash_m == "-m"
    said = help_of(module, monkeypatch, capsys)
    for option in (word for word in given if word.startswith("--")):
        assert re.search(rf"{option}\b", said), option


def test_every_benchmark_of_make_bench_runs_in_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in OUR_MODULE.findall(planned("bench")):
        assert "--small" in help_of(module, monkeypatch, capsys), module


@pytest.mark.parametrize(
    "script", sorted({each.script for each in SYSTEMS.values() if not each.in_peers_venv})
)
def test_every_system_of_the_benchmark_begins_and_takes_its_options(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = help_of(script, monkeypatch, capsys)
    given = ["--batches", "--warm-up"]
    for system in SYSTEMS.values():
        given += system.options if system.script == script else ()
    for option in (word for word in given if word.startswith("--")):
        assert re.search(rf"{option}\b", said), option


def subcommands(command: Any) -> dict[str, Any]:
    return getattr(command, "commands", {})


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The innermost command that words name, and what is left of them for it."""
    command = get_command(app)
    while words and words[0] in subcommands(command):
        command, words = subcommands(command)[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("text", commands("braid"))
def test_a_braid_command_takes_the_options_that_the_documents_give_it(text: str) -> None:
    words = shlex.split(text)[1:]
    command, left = command_of(words)
    assert len(left) < len(words), "there is such a command"
    if "…" not in left and any(word.startswith("-") for word in left):
        command.make_context(command.name, left)  # parses, and runs nothing
    known = {option for each in command.params for option in each.opts}
    assert {word for word in left if word.startswith("--")} <= known


def test_every_option_that_the_documents_name_is_somebodys() -> None:
    known, todo = set(), [get_command(app)]
    while todo:
        command = todo.pop()
        known |= {option for each in command.params for option in each.opts}
        todo += subcommands(command).values()
    for path in [*(ROOT / "bench").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]:
        known |= set(re.findall(r'"(--[\w-]+)"', path.read_text()))
    for page in PAGES:
        for span in re.findall(r"`([^`\n]+)`", page.read_text()):
            for option in re.findall(r"(?<!\S)--[a-z][\w-]*", span):
                assert option in known, f"{option} in {page.name}"
