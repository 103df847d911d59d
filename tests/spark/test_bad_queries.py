"""What people get wrong in queries and plans: one clear error each, and nothing is made.

An error in the query points at it. Some are found by Spark's analyzer, and read like ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.commands import Place, Told, assert_refused, many_commands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Braid = Callable[..., Told]

pytestmark = pytest.mark.spark

COMMAND = Path(sys.executable).with_name("braid")
WINDOW = "[RANGE 3 SECONDS]"
HISTORY = "[PARTITION BY k ROWS 2]"


def query(select: str = "a.k", more: str = "", end: str = "", a: str = WINDOW) -> str:
    where = f"a.k = b.k AND b.v = c.v{more and f' AND {more}'}"
    return f"SELECT {select} FROM a {a}, b {WINDOW}, c {WINDOW} WHERE {where} {end}".strip()


@pytest.fixture(scope="module")
def braid() -> Iterator[Braid]:
    with many_commands() as run:
        yield run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Streams that nothing is done to."""
    place = Place(tmp_path_factory.mktemp("streams")).fill(files=2)
    yield place
    assert not place.checkpoint.exists()
    assert not place.out.exists()


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--plan", "(a b)", ["'(a b)' lacks the stream 'c'", "exactly once"]),
        ("--plan", "((a b) c b)", ["names the stream 'b' more than once", "exactly once"]),
        ("--plan", "((a b) d)", ["names 'd', which is no stream", "a, b, c"]),
        ("--plan", "a b c", ["'a b c' is not one tree", "((a b) c)"]),
        ("--plan", "((a b) c", ["does not close a bracket"]),
        ("--plan", "((a) b c)", ["a join of fewer than two inputs"]),
        ("--order", "a: d", ["names 'd', which is no stream", "a, b, c"]),
        ("--order", "b: c", ["'b: c' does not name each other input", "a"]),
        ("--order", "(a c): b", ["(a c) is no input of a join in the plan ((a b) c)"]),
        ("--order", "a b", ["'a b' is no probe order", "a: b c"]),
        ("--order", "a: b; A: b", ["A has two probe orders", "one"]),
    ],
)
def test_a_plan_that_does_not_fit_the_query_is_refused(
    place: Place, braid: Braid, option: str, text: str, words: list[str]
) -> None:
    assert_refused(braid(*place.command(query()), option, text), *words)
    assert_refused(braid("explain", "-q", query(), *place.streams, option, text), *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (query(more="a.w > 3"), ["unknown column 'w' of stream 'a'", "known: k, ts, v"]),
        (query(more="vv > 3"), ["unknown column 'vv'", "did you mean 'v'?"]),
        (query(more="uper(a.name) = 'X'"), ["unknown function 'uper'", "mean 'upper'?"]),
        (query("upper(a.name, 1) AS x"), ["requires 1 parameter", "spark.apache.org"]),
        (query("uper(a.name, b.name) AS x"), ["uper cannot be computed over several"]),
        (query(more="a.ts > 5"), ['incompatible types ("TIMESTAMP" and "INT")', "CAST"]),
        (query(more="a.name > b.v"), ["cannot compare string with int64", "CAST"]),
        (query("a.k + b.name AS x"), ["cannot add int64 and string", "CAST"]),
        (query("upper(a.v + b.v) AS x"), ["cannot compute upper of int64", "CAST"]),
        (query(more="a.v"), ["a condition is true or false, but this is int64", "= 1"]),
        (query(more="a.k = c.name"), ["a.k is int64, but c.name is string", "CAST"]),
        (query("sum(a.name) AS x"), ["only numbers have a sum, and this is string", "CAST"]),
        (query("a.k, count(*) AS n"), ["a.k is neither in GROUP BY", "max(a.k)"]),
        (query("b.v, count(*) AS n", end="GROUP BY a.k"), ["b.v is neither in GROUP BY"]),
        (query(more="sum(a.v) > 3"), ["an aggregate cannot stand in WHERE", "HAVING"]),
        (query().replace("b.v = c.v", "b.v < c.v"), ["no equality connects a, b with c"]),
        (query(a="[PARTITION BY v ROWS 2]"), ["PARTITION BY leaves out k", "v, k ROWS 2"]),
        (query("count(*) AS n", a=HISTORY), ["GROUP BY over a window of ROWS", "RANGE"]),
    ],
)
def test_a_query_that_cannot_be_run_is_pointed_at(
    place: Place, braid: Braid, text: str, words: list[str]
) -> None:
    assert_refused(braid(*place.command(text)), *words, "^")


def test_a_plan_that_keeps_results_of_a_history_is_refused(place: Place, braid: Braid) -> None:
    told = braid(*place.command(query(a=HISTORY)), "--plan", "((a b) c)")
    assert_refused(told, "intermediate results of 'a'", "make 'a' an input of the outermost")


def test_another_plan_than_the_checkpoints_is_refused_with_both(
    tmp_path: Path, braid: Braid
) -> None:
    place = Place(tmp_path).fill(files=1)
    command = place.command(query())
    told = braid(*command, "--plan", "(a (b c))", "--order", "a: (b c)")
    assert told.code == 0, told
    for plan in ("(a b c)", "(a (b c))"):
        told = braid(*command, "--plan", plan)
        words = ("another plan", "it is (a (b c)); a: (b c)", f"asked for is {plan}")
        assert_refused(told, place.checkpoint, *words, "leave the plan away")
    assert braid(*command, "--plan", "(A (b  C))", "--order", "a: (B C)").code == 0
    assert braid(*command).code == 0, "without a plan it goes on with the one that it has"


# --- values that an expression cannot take


def test_a_value_that_cannot_be_cast_stops_the_run_until_it_is_mended(
    tmp_path: Path, braid: Braid
) -> None:
    place = Place(tmp_path).fill(files=3)
    for number in range(3):
        rows = place.rows("a", number)
        place.write("a", number, [row | {"name": str(row["v"])} for row in rows])
    good = place.file("a", 1).read_bytes()
    place.write("a", 1, place.rows("a", 1))
    command = place.command(query("a.v, b.v AS w", more="CAST(a.name AS INT) >= 0"))
    told = braid(*command)
    assert_refused(told, "cannot compute cast(`name` AS INT)", "'a0'", "use `try_cast`")
    assert "tried again" not in told.err
    assert place.batches() == [0]
    place.file("a", 1).write_bytes(good)
    assert braid(*command).code == 0
    assert place.batches() == [0, 1, 2]
    assert sum(place.results().values()) == braid_results(place, braid)


def braid_results(place: Place, braid: Braid) -> int:
    """How many results there are where nothing was cast."""
    other = Place(place.folder / "plain")
    elsewhere = {"out": other.out, "checkpoint": other.folder / "checkpoint"}
    told = braid(*place.command(query("a.v, b.v AS w"), **elsewhere))
    assert told.code == 0, told
    return sum(other.results().values())


def test_a_result_that_has_no_value_is_an_error_with_a_cure(
    tmp_path: Path, braid: Braid
) -> None:
    place = Place(tmp_path).fill(files=1)
    told = braid(*place.command(query("a.v / (a.v - a.v) AS x")))
    assert_refused(told, "`v` / (`v` - `v`): Division by zero", "try_divide")
    assert "tried again" not in told.err


@pytest.mark.parametrize(
    "text",
    [
        query("(a.v + b.v) * 9223372036854775807 AS x"),
        query("sum(a.v * b.v * 9223372036854775807) AS x", end="GROUP BY a.k"),
    ],
)
def test_an_overflow_over_several_streams_names_the_cast_to_write(
    tmp_path: Path, braid: Braid, text: str
) -> None:
    place = Place(tmp_path).fill(files=1)
    for bad_rows in ("fail", "keep"):
        told = braid(*place.command(text), "--bad-rows", bad_rows)
        assert_refused(told, "overflow: a result of '*'", "write CAST(a.v AS DOUBLE)")
        assert "tried again" not in told.err
        assert place.batches() == []
    cured = text.replace("(a.v", "(CAST(a.v AS DOUBLE)")
    place = Place(tmp_path / "cured").fill(files=1)
    assert braid(*place.command(cured)).code == 0


# --- explain


def explained(place: Place, *words: str | Path) -> list[str | Path]:
    grouped = query("a.k, count(*) AS n", more="a.v % 2 = 0 AND a.v < c.k", end="GROUP BY a.k")
    return ["explain", "-q", grouped, *place.streams, *words]


def test_a_plan_is_explained_in_words(place: Place, braid: Braid) -> None:
    told = braid(*explained(place))
    assert told.code == 0, told
    assert told.err == ""
    for line in (
        "plan ((a b) c)",
        "only where `v` % 2 = 0",
        "as early as their columns are there: a.v < c.k",
        "round 3: partial aggregates by group",
        "GROUP BY a.k, after a shuffle, every 1 second",
    ):
        assert line in told.out
    assert "plan (a b c)" in braid(*explained(place, "--plan", "(a b c)")).out


@pytest.mark.parametrize(("name", "start"), [("p.svg", b"<?xml"), ("p.PNG", b"\x89PNG")])
def test_a_plan_is_drawn(
    place: Place, braid: Braid, tmp_path: Path, name: str, start: bytes
) -> None:
    told = braid(*explained(place, "--draw", tmp_path / name))
    assert told.code == 0, told
    assert f"drawn in {tmp_path / name}" in told.out
    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("plan.doc", ["its ending names no format", ".svg or .png"]),
        ("plan", ["its ending names no format", ".svg or .png"]),
        ("nowhere/plan.svg", ["No such file or directory", "may write to"]),
        ("file/plan.svg", ["Not a directory", "may write to"]),
    ],
)
def test_a_place_where_no_plan_can_be_drawn_is_named(
    place: Place, braid: Braid, tmp_path: Path, name: str, words: list[str]
) -> None:
    (tmp_path / "file").touch()
    told = braid(*explained(place, "--draw", tmp_path / name))
    assert_refused(told, tmp_path / name, *words)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_matplotlib_a_plan_is_explained_but_not_drawn(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ImportError('there is none')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    def run(*words: str | Path) -> Told:
        done = subprocess.run(
            [COMMAND, *explained(place, *words)],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        return Told(done.returncode, done.stdout, done.stderr)

    assert run().code == 0
    told = run("--draw", tmp_path / "plan.svg")
    assert_refused(told, "drawing the plan needs matplotlib", "pip install 'braid[draw]'")


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (query(more="a.w > 3"), [], ["unknown column 'w' of stream 'a'", "^"]),
        (query(), ["--event-time", "when"], ["no column 'when'", "known: k, ts, v"]),
        (query(), ["--stream", "d=nowhere"], ["nowhere does not exist", "check the path"]),
        (query().replace("c ", "d ").replace("c.", "d."), [], ["'d'", "--stream d=DIR"]),
        (query().replace("b.v = c.v", "1 = 1"), [], ["no equality connects a, b with c", "^"]),
    ],
)
def test_explain_refuses_what_run_refuses(
    place: Place, braid: Braid, text: str, options: list[str], words: list[str]
) -> None:
    assert_refused(braid("explain", "-q", text, *place.streams, *options), *words)
    assert_refused(braid(*place.command(text), *options), *words)
