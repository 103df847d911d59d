"""A plan as a picture: streams at the bottom, joins above their inputs.

A join's box tells who probes whom; an edge, what is kept of the rows that go up it, and in
which round they are shuffled.
"""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING

from braid.cli.drawing import new_figure, save_figure
from braid.plan.explain import (
    grouping_lines,
    node_details,
    node_label,
    node_probes,
    node_shuffles,
    tree_levels,
)
from braid.plan.names import AGGREGATES, state_names
from braid.plan.tree import Join, leaves

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from braid.model.query import Query
    from braid.plan.rounds import Rounds

_STREAM, _JOIN, _GROUPING, _INK = "#dceefb", "#fde9c9", "#e3f1dd", "#33475b"
_WIDTH, _HEIGHT = 2.8, 1.6  # inches per stream and per level
_MOST_LETTERS = 44


def draw_plan(query: Query, rounds: Rounds, path: Path) -> None:
    """Write the picture of a plan; the file's ending says in which format."""
    (tree,) = rounds.trees
    places = tree_levels(tree)
    top = places[tree][1] + (query.grouping is not None)
    width = max(6.0, _WIDTH * len(query.streams))
    figure = new_figure(path, "plan", width, _HEIGHT * (top + 1))
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(-0.6, len(query.streams) - 0.4)
    axes.set_ylim(-0.4, top + 0.4)
    kept = _kept(query, rounds)
    for node, (across, level) in places.items():
        if isinstance(node, Join):
            for child in node.children:
                state = kept.get(tuple(sorted(leaves(child))), "no state")
                label = f"{node_shuffles(rounds, child)}\n{state}"
                _edge(axes, places[child], (across, level), label)
        lines = [node_label(query, rounds, node), *node_details(query, node)]
        lines += node_probes(query, rounds, node)
        _box(axes, across, level, lines, _JOIN if isinstance(node, Join) else _STREAM)
    if query.grouping is not None:
        across, level = places[tree]
        last = f"shuffled in round {len(rounds.rounds)}"
        how = last if rounds.grouped_port is not None else "no shuffle"
        _edge(axes, (across, level), (across, level + 1), f"partial aggregates,\n{how}")
        _box(axes, across, level + 1, grouping_lines(query), _GROUPING)
    save_figure(figure, path, "plan")


def _kept(query: Query, rounds: Rounds) -> dict[tuple[int, ...], str]:
    """For each input of a join, by its streams, the states that are kept of it."""
    kept: dict[tuple[int, ...], str] = {}
    for state, name in zip(rounds.states, state_names(query, rounds), strict=True):
        by = name.rpartition(" by ")[2]
        streams = state.relation.streams
        if not state.waits and name != AGGREGATES:
            known = kept.get(streams)
            kept[streams] = f"{known}, by {by}" if known else f"state by {by}"
    return kept


def _edge(axes: Axes, lower: tuple[float, int], upper: tuple[float, int], label: str) -> None:
    axes.plot(*zip(lower, upper, strict=True), color=_INK, linewidth=1, zorder=1)
    across, height = (lower[0] + upper[0]) / 2, (lower[1] + upper[1]) / 2
    style = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    axes.text(across, height, label, ha="center", va="center", size=7, color=_INK, bbox=style)


def _box(axes: Axes, across: float, level: float, lines: list[str], colour: str) -> None:
    text = "\n".join(shorten(line, _MOST_LETTERS, placeholder=" …") for line in lines)
    style = {"boxstyle": "round,pad=0.5", "facecolor": colour, "edgecolor": _INK}
    axes.text(across, level, text, ha="center", va="center", size=8, bbox=style, zorder=2)
