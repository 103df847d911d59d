from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from braid import BraidError, JoinGraph
from braid.optimize import cost_of, dump_graph, load_graph, parse_graph
from braid.optimize.cardinality import Cardinalities

if TYPE_CHECKING:
    from pathlib import Path

RATES = {"a": 20, "b": 5, "c": 50}
PAIRS = {("a", "b"): 0.02, ("b", "c"): 0.5}


@pytest.mark.parametrize(
    ("given", "told", "cure"),
    [
        ({"rates": {"a": 1}, "selectivity": {}}, "1 streams joins nothing", "two streams"),
        ({"rates": RATES | {"a": -1}}, "rate of stream 'a' is -1", "0 or more"),
        ({"rates": RATES | {"a": math.nan}}, "rate of stream 'a' is nan", "0 or more"),
        ({"rates": RATES | {"a": math.inf}}, "rate of stream 'a' is inf", "0 or more"),
        ({"rates": RATES | {"a": True}}, "rate of stream 'a' is True", "0 or more"),
        ({"rates": RATES | {"a": "20"}}, "rate of stream 'a' is '20'", "0 or more"),
        ({"rates": {1: 2, "b": 3}}, "1 is no name", "by text"),
        ({"selectivity": PAIRS | {("a", "c"): 1.01}}, "('a', 'c') is 1.01", "from 0 to 1"),
        ({"selectivity": PAIRS | {("a", "c"): -0.1}}, "('a', 'c') is -0.1", "from 0 to 1"),
        ({"selectivity": PAIRS | {("a", "c"): math.nan}}, "is nan", "from 0 to 1"),
        ({"selectivity": PAIRS | {("a", "c"): None}}, "is None", "from 0 to 1"),
        ({"selectivity": PAIRS | {("a", "d"): 0.1}}, "names 'd', which has no", "are a, b, c"),
        ({"selectivity": PAIRS | {("a", "a"): 0.1}}, "with itself", "second a name"),
        ({"selectivity": PAIRS | {("b", "a"): 0.1}}, "two selectivities", "one"),
        ({"selectivity": PAIRS | {"ab": 0.1}}, "'ab' is no pair", '("a", "b")'),
        ({"selectivity": {("a", "b"): 1}}, "nothing joins a, b with c", "1 joins all"),
        ({"selectivity": {}}, "nothing joins a with b, c", "1 joins all"),
        ({"window": 0}, "window of stream 'a' is 0", "above 0"),
        ({"window": -3.5}, "window of stream 'a' is -3.5", "above 0"),
        ({"window": math.inf}, "window of stream 'a' is inf", "finite"),
        ({"window": math.nan}, "window of stream 'a' is nan", "above 0"),
        ({"window": {"a": 1, "b": 2}}, "window lacks the stream 'c'", "every stream"),
        ({"window": {"a": 1, "b": 2, "c": 3, "cc": 3}}, "names 'cc'", "mean 'c'?"),
        ({"row_bytes": {"a": 8, "b": -8, "c": 8}}, "row_bytes of stream 'b'", "0 or more"),
        ({"keys": [("a", "c")]}, "('a', 'c') is of one key", "each pair"),
        ({"keys": [("a", "b"), ("b", "a")]}, "more than once", "one key"),
        ({"keys": [("a", "x")]}, "names 'x'", "are a, b, c"),
    ],
)
def test_a_graph_that_makes_no_sense_is_refused_with_the_cure(
    given: dict[str, Any], told: str, cure: str
) -> None:
    parts = {"rates": RATES, "selectivity": PAIRS, "window": 15.0} | given
    with pytest.raises(BraidError) as caught:
        JoinGraph(**parts)
    assert told in caught.value.message
    assert cure in (caught.value.hint or "")


def test_pairs_are_known_in_either_order_and_others_join_all_with_all() -> None:
    graph = JoinGraph(RATES, PAIRS, 15.0)
    assert graph.selectivity_of("b", "a") == graph.selectivity_of("a", "b") == 0.02
    assert graph.selectivity_of("a", "c") == 1
    assert not graph.are_joined("a", "c")


def test_every_stream_may_have_a_window_of_its_own() -> None:
    graph = JoinGraph(RATES, PAIRS, {"a": 1, "b": 2, "c": 4})
    sizes = Cardinalities(graph)
    a, b, c = 20 * 1, 5 * 2, 50 * 4
    assert sizes.rows(0b111) == pytest.approx(a * b * c * 0.02 * 0.5)
    assert sizes.rows(0b101) == pytest.approx(a * c)
    # Whoever comes last: rows of a meet b's window and c's, and so on.
    made = 20 * b * c + 5 * a * c + 50 * a * b
    assert sizes.rows(0b111) * sizes.turnover(0b111) == pytest.approx(made * 0.02 * 0.5)


def test_the_bytes_of_a_joined_row_are_those_of_its_members() -> None:
    graph = JoinGraph(RATES, PAIRS, 2.0, row_bytes={"a": 8, "b": 100, "c": 0})
    states = 40 * 8 + 10 * 100 + 40 * 10 * 0.02 * 108
    assert cost_of(graph, "((a b) c)").memory == pytest.approx(states)


def test_predicates_on_one_key_are_not_counted_twice() -> None:
    """Of streams with the values 0 to 1, 0 to 3 and 0 to 7, as many as all three have."""
    values = {"a": 2, "b": 4, "c": 8, "d": 5}
    pairs = {("a", "b"): 1 / 4, ("a", "c"): 1 / 8, ("b", "c"): 1 / 8, ("c", "d"): 0.1}
    graph = JoinGraph(values, pairs, 1.0, keys=[("a", "b", "c")])
    sizes = Cardinalities(graph)
    rows = {(a, b, c) for a in range(2) for b in range(4) for c in range(8) if a == b == c}
    assert sizes.rows(0b0111) == pytest.approx(len(rows))
    assert sizes.rows(0b0101) == pytest.approx(2)
    assert sizes.rows(0b1111) == pytest.approx(len(rows) * 5 * 0.1)
    assert Cardinalities(JoinGraph(values, pairs, 1.0)).rows(0b0111) < len(rows)


@pytest.mark.parametrize(
    "graph",
    [
        JoinGraph(RATES, PAIRS, 15.0),
        JoinGraph(RATES, PAIRS, {"a": 1, "b": 2.5, "c": 4}, row_bytes={"a": 1, "b": 2, "c": 3}),
        JoinGraph({"my a": 1, "b": 0}, {("b", "my a"): 0}, 1, keys=[["my a", "b"]]),
    ],
)
def test_a_graph_survives_its_text(graph: JoinGraph, tmp_path: Path) -> None:
    assert parse_graph(dump_graph(graph)) == graph
    (tmp_path / "graph.json").write_text(dump_graph(graph))
    assert load_graph(tmp_path / "graph.json") == graph


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no JSON object"),
        ('{"rates": {}, "window": 1}', "lacks the field 'selectivity'"),
        ('{"rates": {}, "window": 1, "selectivity": [], "x": 1}', "unknown field 'x'"),
        ('{"rates": [], "window": 1, "selectivity": []}', "'rates' of the join graph is no"),
        ('{"rates": {"a": 1, "b": 1}, "window": "1", "selectivity": [["a", "b", 1]]}', "'1'"),
        ('{"rates": {"a": 1, "b": 1}, "window": 1, "selectivity": {"a": 1}}', "no selectivity"),
        ('{"rates": {"a": 1, "b": 1}, "window": 1, "selectivity": [["a", "b"]]}', "no selec"),
        (
            '{"rates": {"a": 1, "b": 1}, "window": 1, '
            '"selectivity": [["a", "b", 1], ["a", "b", 0.5]]}',
            "two selectivities",
        ),
        ('{"rates": {"a": 1, "b": 1}, "window": 1, "selectivity": [], "keys": "a"}', "'keys'"),
        ('{"rates": {"a": 1, "b": 1}, "window": 1, "selectivity": [["a", "b", NaN]]}', "nan"),
    ],
)
def test_text_that_is_no_graph_is_refused_with_a_cure(text: str, told: str) -> None:
    with pytest.raises(BraidError) as caught:
        parse_graph(text)
    assert told in caught.value.message
    assert caught.value.hint


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BraidError, match=r"nowhere\.json"):
        load_graph(tmp_path / "nowhere.json")
    with pytest.raises(BraidError, match="join graph"):
        load_graph(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(BraidError, match=r"bytes\.json"):
        load_graph(tmp_path / "bytes.json")
