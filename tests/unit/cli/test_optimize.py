from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pytest

from braid import JoinGraph
from braid.cli import main
from braid.optimize import cost_of, dump_graph
from tests.unit.optimize.reference import random_graph

if TYPE_CHECKING:
    from pathlib import Path

FOUR = JoinGraph(
    {"a": 20, "b": 20, "c": 20, "[d]": 20},
    {("a", "b"): 0.02, ("b", "c"): 0.2, ("c", "[d]"): 0.05},
    window=50.0,
)


@pytest.fixture
def braid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Braid:
    monkeypatch.setenv("COLUMNS", "160")
    return Braid(monkeypatch, capsys)


class Braid:
    """The command, and what it says."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *words: object) -> tuple[int, str, str]:
        self.monkeypatch.setattr("sys.argv", ["braid", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        said = self.capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.json"
    path.write_text(dump_graph(FOUR))
    return path


def test_all_strategies_stand_side_by_side_with_what_their_plans_cost(
    braid: Braid, graph: Path
) -> None:
    mjoin, hybrid = cost_of(FOUR, "(a b c [d])"), cost_of(FOUR, "((a b) c [d])")
    budget = (hybrid.cpu, 30_000)
    code, said, _ = braid("optimize", graph, "--cpu", budget[0], "--memory", budget[1])
    assert code == 0
    rows = {line.split()[1]: line for line in said.splitlines() if line.startswith("│")}
    assert list(rows) == ["mjoin-init", "bjtree-init", "min-state", "exhaustive"]
    for name in ("mjoin-init", "bjtree-init", "exhaustive"):
        assert "((a b) c [d])" in rows[name]
        assert f"{hybrid.cpu:,.0f}" in rows[name]
        assert "yes" in rows[name]
    assert "((a b) (c [d]))" in rows["min-state"]
    assert "no" in rows["min-state"]
    assert "3 plans, all there are, of which 1 keeps both budgets" in said
    assert f"memory 74,000 to {mjoin.memory:,.0f}" in said
    assert f"--plan '((a b) c [d])' --order '{hybrid.orders}'" in said


def test_the_picture_is_drawn(braid: Braid, graph: Path, tmp_path: Path) -> None:
    out = tmp_path / "plans.png"
    code, said, _ = braid("optimize", graph, "--cpu", 1e7, "--memory", 5000, "--out", out)
    assert code == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "no plan keeps both budgets" in said
    assert "--plan" not in said


@pytest.mark.parametrize("model", ["nested-loops", "index"])
def test_calibrated_costs_are_in_cores(braid: Braid, graph: Path, model: str) -> None:
    code, said, _ = braid("optimize", graph, "--model", model, "--calibrate")
    assert code == 0
    row = next(line for line in said.splitlines() if "min-state" in line)
    cores = float(row.split("│")[3])
    assert 0.001 < cores < 1000


def test_many_streams_have_plans_without_an_exhaustive_search(
    braid: Braid, tmp_path: Path
) -> None:
    path = tmp_path / "graph.json"
    path.write_text(dump_graph(random_graph(Random(2), 15)))
    code, said, _ = braid("optimize", path, "--seconds", 0)
    assert code == 0
    assert "not for more than 10 streams" in said
    assert "as found in 0 s" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--cpu", "-1"], "the CPU budget is -1.0"),
        (["--memory", "nan"], "the memory budget is nan"),
        (["--model", "hash"], "unknown cost model 'hash'"),
        (["--seconds", "-1"], "the exploration time is -1.0 seconds"),
        (["--out", "plans.txt"], "its ending names no format"),
        (["--out", "no/such/folder/plans.png"], "No such file or directory"),
    ],
)
def test_what_makes_no_sense_is_one_clear_error(
    braid: Braid, graph: Path, words: list[str], told: str
) -> None:
    code, _, said = braid("optimize", graph, *words)
    assert code == 1
    assert said.startswith("error: ")
    assert told in said
    assert "hint: " in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no json", "not JSON"),
        (json.dumps({"rates": {"a": 1, "b": 2, "c": 3}}), "lacks the field 'selectivity'"),
        (
            json.dumps({"rates": {"a": 1, "b": 2}, "selectivity": [], "window": 1}),
            "nothing joins a with b",
        ),
        (
            json.dumps(
                {"rates": {"a": -1, "b": 2}, "selectivity": [["a", "b", 2]], "window": 1}
            ),
            "the rate of stream 'a' is -1",
        ),
    ],
)
def test_a_file_that_has_no_graph_is_one_clear_error(
    braid: Braid, tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "graph.json"
    path.write_text(text)
    code, said, errors = braid("optimize", path)
    assert (code, said) == (1, "")
    assert told in errors
    assert "hint: " in errors


def test_a_file_that_is_not_there_is_named(braid: Braid, tmp_path: Path) -> None:
    code, _, said = braid("optimize", tmp_path / "nowhere.json")
    assert code == 1
    assert "nowhere.json: No such file or directory" in said
