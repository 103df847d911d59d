"""The worked examples of Zhu's dissertation, chapters 4 to 7.

Its text has the formulas, the shapes, the steps and some results, and they are tested as it has
them. The rates and selectivities of most graphs are in its pictures alone. Where these are not
known, graphs of ours stand in that have every property that the text tells of the picture.
"""

from __future__ import annotations

import math

import pytest

from braid import JoinGraph
from braid.optimize import NestedLoops, cost_of, min_state, mjoin_ordering
from braid.optimize.cardinality import Cardinalities
from braid.optimize.estimate import Estimator, Part
from braid.optimize.front import Front
from braid.optimize.min_state import join_lightest
from braid.optimize.order_by_rank import order_by_rank
from braid.optimize.probe_orders import Ordered
from braid.optimize.rank_orders import Probes, head_branch, merge_branches
from braid.optimize.remove_states import remove_states
from braid.optimize.select_states import edge_frequency, select_states
from braid.plan.tree import show_tree
from tests.unit.optimize.reference import Reference, Tree, all_trees, binary_trees

TABLE_8_1 = {
    1: JoinGraph({"a": 20, "b": 20, "c": 20}, {("a", "b"): 0.05, ("b", "c"): 0.5}, 5.0),
    2: JoinGraph({"a": 20, "b": 20, "c": 50}, {("a", "b"): 0.02, ("b", "c"): 0.5}, 15.0),
}
"""The sets of three streams, which join as in Figure 4.1."""

FIGURE_5_1 = JoinGraph(
    {"a": 10, "b": 4, "c": 8, "d": 1, "e": 6, "f": 10},
    {
        ("a", "b"): 0.5,
        ("a", "c"): 0.5,
        ("c", "d"): 0.1,
        ("d", "e"): 0.5,
        ("d", "f"): 0.5,
    },
    window=1.0,
)
"""Below a: b, and c before d, which has two children; d ranks below c, and cd below b."""

FIGURES_5_5_AND_5_6 = JoinGraph(
    {"a": 40, "b": 40, "c": 2, "d": 40, "e": 40, "f": 40},
    {
        ("a", "b"): 0.02,
        ("b", "c"): 0.2,
        ("c", "d"): 0.2,
        ("d", "e"): 0.01,
        ("e", "f"): 0.05,
    },
    window=1.0,
)


def text(graph: JoinGraph, part: Part) -> str:
    return show_tree(part.tree, graph.streams)


@pytest.mark.parametrize("number", TABLE_8_1)
@pytest.mark.parametrize("constants", [(1.0, 1.0, 1.0), (3.0, 0.5, 0.25)])
def test_figure_4_1_the_formulas_of_mjoin_and_binary_tree(
    number: int, constants: tuple[float, float, float]
) -> None:
    graph = TABLE_8_1[number]
    a, b, c = graph.rates.values()
    ab, bc = graph.selectivity.values()
    w = float(graph.windows["a"])
    insert, delete, join = constants
    common = (a + b + c) * (insert + delete) + 3 * a * b * c * ab * bc * w**2 * join
    mjoin = common + b * c * bc * w * join + 2 * a * b * ab * w * join  # equation 4.2
    tree = common + 2 * a * b * ab * w * (join + insert + delete)  # 4.4
    memory = (a + b + c) * w  # 4.3
    model = NestedLoops(*constants)
    orders = "a: b c; b: a c; c: b a"
    found = cost_of(graph, "(a b c)", orders, model=model)
    assert (found.cpu, found.memory) == pytest.approx((mjoin, memory))
    found = cost_of(graph, "((a b) c)", model=model)
    assert (found.cpu, found.memory) == pytest.approx((tree, memory + a * b * ab * w**2))  # 4.5


@pytest.mark.parametrize("number", TABLE_8_1)
def test_figure_4_1_the_best_orders_and_the_best_binary_tree(number: int) -> None:
    graph = TABLE_8_1[number]
    best = {"a": ("b", "c"), "b": ("a", "c"), "c": ("b", "a")}
    assert mjoin_ordering(graph, cartesian=False) == best
    assert min_state(graph, cartesian=False).tree == "((a b) c)"


def test_section_4_3_memory_buys_cpu_only_if_computing_again_is_dearer_than_keeping() -> None:
    graph = TABLE_8_1[2]
    b, c = graph.rates["b"], graph.rates["c"]
    recomputing = b * c * graph.selectivity["b", "c"] * 15.0
    keeping_each = 2 * graph.rates["a"] * b * graph.selectivity["a", "b"] * 15.0
    for ratio, tree_is_cheaper in ((0.99, True), (1.01, False)):
        model = NestedLoops(insert=ratio * recomputing / keeping_each, delete=0.0)
        mjoin, tree = (cost_of(graph, each, model=model) for each in ("(a b c)", "((a b) c)"))
        assert mjoin.memory < tree.memory
        assert (tree.cpu < mjoin.cpu) == tree_is_cheaper


def test_figures_5_1_and_5_2_ranks_merged_and_taken_apart() -> None:
    """The steps of the picture, for the rows of a."""
    graph = FIGURE_5_1
    growth = {
        name: graph.rates[name] * selectivity
        for (_, name), selectivity in graph.selectivity.items()
    }
    probes = {
        # rank = (T - 1) / C, and for a single input C = T
        name: Probes((1 << place,), growth[name], growth[name], 1 - 1 / growth[name])
        for place, name in enumerate("abcdef")
        if name != "a"
    }
    assert probes["d"].rank < probes["b"].rank < probes["c"].rank
    assert probes["e"].rank < probes["f"].rank
    below_d = merge_branches([[probes["e"]], [probes["f"]]])
    assert below_d == [probes["e"], probes["f"]], "ordered already"
    from_d = head_branch(probes["d"], below_d)
    assert from_d == [probes["d"], *below_d], "ordered already"
    cd, *rest = head_branch(probes["c"], from_d)
    assert cd.inputs == (0b100, 0b1000), "c and d are merged"
    t_cd, c_cd = growth["c"] * growth["d"], growth["c"] + growth["c"] * growth["d"]
    assert cd.rank == pytest.approx((t_cd - 1) / c_cd)
    assert cd.rank < probes["b"].rank
    merged = merge_branches([[probes["b"]], [cd, *rest]])
    assert [each.inputs for each in merged] == [(4, 8), (2,), (16,), (32,)]
    assert mjoin_ordering(graph, cartesian=False)["a"] == ("c", "d", "b", "e", "f")


def test_figure_5_2_a_greedy_order_would_begin_with_b_and_make_more_rows() -> None:
    reference = Reference(FIGURE_5_1, cartesian=False)
    first = min("bc", key=lambda name: reference.cascade("a", [name]))
    assert first == "b"
    ours = reference.cascade("a", ["c", "d", "b", "e", "f"])
    assert ours == pytest.approx(reference.best_cascade("a", list("bcdef")))
    assert ours < reference.cascade("a", ["b", "c", "d", "e", "f"])


def test_figure_5_3_a_product_saves_200_of_750_join_operations() -> None:
    """B and C are slow and A is fast; W is 5. Per row of B, 750 against 550 operations."""
    graph = JoinGraph(
        {"a": 100, "b": 1, "c": 10}, {("a", "b"): 0.5, ("a", "c"): 0.04}, window=5.0
    )
    a, b, c = 1, 2, 4
    sizes = Cardinalities(graph)
    assert Ordered.of(sizes, {b: (a, c)}).matches == pytest.approx(750)
    assert Ordered.of(sizes, {b: (c, a)}).matches == pytest.approx(550)
    assert mjoin_ordering(graph, cartesian=False)["b"] == ("a", "c")
    assert mjoin_ordering(graph, cartesian=True)["b"] == ("c", "a")


def test_figure_5_4_edges_are_counted_where_orders_follow_them() -> None:
    inputs = [1 << number for number in range(6)]
    ordered = order_by_rank(Cardinalities(FIGURE_5_1), inputs, cartesian=False)
    reference = Reference(FIGURE_5_1, cartesian=False)
    sequences = []
    for origin, order in ordered.orders.items():
        sequence = ["abcdef"[each.bit_length() - 1] for each in (origin, *order)]
        best = reference.best_cascade(sequence[0], [n for n in "abcdef" if n != sequence[0]])
        assert reference.cascade(sequence[0], sequence[1:]) == pytest.approx(best)
        sequences.append("".join(sequence))
    counted = {
        "".join("abcdef"[each.bit_length() - 1] for each in sorted(edge)): count
        for edge, count in edge_frequency(ordered.orders).items()
    }
    for one, other in FIGURE_5_1.selectivity:
        seen = sum((one + other in s) + (other + one in s) for s in sequences)
        assert counted.get(one + other, 0) == seen
    assert counted["cd"] == 6, "in all orders"


def test_figures_5_5_and_5_6_operators_are_broken_and_merged() -> None:
    graph = FIGURES_5_5_AND_5_6
    estimator = Estimator(graph)
    steps = [text(graph, tree) for tree in select_states(estimator, math.inf)]
    assert steps[:4] == [
        "(a b c d e f)",
        "(a b c (d e) f)",  # d - e becomes a join of its own
        "((a b) c (d e) f)",  # then a - b
        "((a b) (c d e) f)",  # then c - de, which takes de in
    ]
    broken = cost_of(graph, "((a b) (c (d e)) f)")
    merged = cost_of(graph, "((a b) (c d e) f)")
    assert merged.cpu < broken.cpu
    assert merged.memory < broken.memory


def test_figure_5_5_the_state_of_a_new_join_grows_as_its_inputs_do() -> None:
    graph = JoinGraph(FIGURES_5_5_AND_5_6.rates, FIGURES_5_5_AND_5_6.selectivity, window=3.0)
    sizes, de = Cardinalities(graph), 0b11000
    each = 40 * 40 * 0.01 * 3.0  # for rows of d, and as many for rows of e
    assert sizes.rows(de) == pytest.approx(each * 3.0)
    assert sizes.rows(de) * sizes.turnover(de) == pytest.approx(2 * each)


def test_figure_6_1_min_state_joins_the_lightest_edge_and_goes_on() -> None:
    graph = JoinGraph(
        {"a": 10, "b": 20, "c": 30, "d": 10, "e": 15},
        {
            ("a", "d"): 0.1,
            ("a", "b"): 0.5,
            ("b", "d"): 0.5,
            ("c", "e"): 0.1,
            ("b", "c"): 0.2,
        },
        window=1.0,
    )
    weights = {
        pair: graph.rates[pair[0]] * graph.rates[pair[1]] * selectivity
        for pair, selectivity in graph.selectivity.items()
    }
    assert min(weights, key=lambda pair: weights[pair]) == ("a", "d")
    merged_rate, merged_selectivity = weights["a", "d"], 0.5 * 0.5
    assert weights["c", "e"] < merged_rate * graph.rates["b"] * merged_selectivity
    tree = join_lightest(Estimator(graph), cartesian=True)
    assert text(graph, tree) == "(((a d) b) (c e))"
    assert tree.memory == pytest.approx(sum(graph.rates.values()) + 10 + 45 + 50)


def test_figure_6_2_a_product_of_small_streams_saves_memory() -> None:
    graph = JoinGraph(
        {"a": 100, "b": 1, "c": 2}, {("a", "b"): 0.5, ("a", "c"): 0.5}, window=1.0
    )
    assert min_state(graph, cartesian=False).tree == "((a b) c)"
    assert min_state(graph, cartesian=False).memory == pytest.approx(103 + 50)
    assert min_state(graph).tree == "(a (b c))"
    assert min_state(graph).memory == pytest.approx(103 + 2)


def test_figure_6_3_the_greedy_tree_may_be_larger_than_the_best() -> None:
    graph = JoinGraph(
        {"a": 20, "b": 5, "c": 5, "d": 20},
        {("a", "b"): 0.2, ("b", "c"): 0.76, ("c", "d"): 0.2},
        window=1.0,
    )
    greedy = join_lightest(Estimator(graph), cartesian=True)
    assert "(b c)" in text(graph, greedy), "the lightest edge"
    best = min(binary_trees(list("abcd")), key=Reference(graph).memory)
    assert best == (("a", "b"), ("c", "d"))
    assert greedy.memory == pytest.approx(50 + 19 + 76)
    assert Reference(graph).memory(best) == pytest.approx(50 + 20 + 20)


def test_figure_6_4_for_a_star_the_greedy_tree_is_the_best() -> None:
    graph = JoinGraph(
        {"a": 30, "b": 10, "c": 80, "d": 5},
        {("a", "b"): 0.3, ("a", "c"): 0.01, ("a", "d"): 0.4},
        window=1.0,
    )
    tree = join_lightest(Estimator(graph, cartesian=False), cartesian=False)
    assert text(graph, tree) == "(((a c) d) b)"
    without_products: list[Tree] = [
        tree for tree in binary_trees(list("abcd")) if _has_centre_below_all(tree)
    ]
    assert tree.memory == pytest.approx(min(map(Reference(graph).memory, without_products)))


def _has_centre_below_all(tree: Tree) -> bool:
    if isinstance(tree, str):
        return True
    inner = [child for child in tree if not isinstance(child, str)]
    return "a" in str(tree) and all(map(_has_centre_below_all, inner))


def test_figure_6_5_states_are_removed_by_merging_joins() -> None:
    graph = JoinGraph(
        {"a": 10, "b": 2, "c": 40, "d": 20, "e": 40, "f": 5},
        {
            ("a", "b"): 0.1,
            ("b", "c"): 0.05,
            ("c", "d"): 0.2,
            ("d", "e"): 0.01,
            ("e", "f"): 0.1,
        },
        window=1.0,
    )
    estimator = Estimator(graph)
    trees = list(remove_states(estimator, join_lightest(estimator, cartesian=True)))
    assert [text(graph, tree) for tree in trees[:2]] == [
        "(((a b) c) ((d e) f))",  # four intermediate states
        "((a b c) ((d e) f))",  # without that of a and b
    ]
    assert text(graph, trees[-1]) == "(a b c d e f)"
    freed = Reference(graph).state_rows(("a", "b"))
    assert trees[1].memory == pytest.approx(trees[0].memory - freed)
    ratio = (trees[1].cpu - trees[0].cpu) / freed
    others: list[Tree] = [
        (("a", "b"), "c", (("d", "e"), "f")),
        ((("a", "b"), "c"), ("d", "e", "f")),
        ((("a", "b"), "c"), ("d", "e"), "f"),
    ]
    for other in others:
        cpu, memory = Reference(graph).costs(other)
        assert ratio < (cpu - trees[0].cpu) / (trees[0].memory - memory), "dearer per row"


def test_figure_6_6_plans_that_nothing_dominates_are_kept() -> None:
    dots = [(1, 9), (2, 6), (3, 7), (4, 4), (4, 8), (6, 3), (7, 3.5), (8, 1), (9, 2)]
    front: Front[Part] = Front()
    for cpu, memory in reversed(dots):
        front.add(Part(1, (), cpu, memory))
    assert [(dot.cpu, dot.memory) for dot in front] == [(1, 9), (2, 6), (4, 4), (6, 3), (8, 1)]


def test_figure_7_2_the_plans_of_three_streams() -> None:
    trees = {str(sorted(map(str, tree))) for tree in all_trees(list("abc"))}
    table = [("a", "b", "c"), (("a", "b"), "c"), (("a", "c"), "b"), ("a", ("b", "c"))]
    assert trees == {str(sorted(map(str, tree))) for tree in table}
    assert len(list(all_trees(list("abcd")))) == 26
