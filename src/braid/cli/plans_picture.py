"""Plans as a picture: CPU against memory, the skyline, and what strategies chose."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from braid.cli.drawing import new_figure, save_figure
from braid.model.shown import clipped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from braid.optimize import Plan, Skyline
    from braid.optimize.plan import Budget

_WIDTH, _HEIGHT = 7.0, 5.0  # inches
_MARKS = "os^Dv*"
_WIDE, _OUTLYING = 30.0, 5.0
"""Beyond such ratios of the most to the least and to the median, an axis is logarithmic."""
_MOST_NAMES, _MOST_LETTERS = 6, 28


def draw_plans(plans: Mapping[str, Plan], found: Skyline, budget: Budget, path: Path) -> None:
    """Write the picture; the file's ending says in which format."""
    figure = new_figure(path, "plans", _WIDTH, _HEIGHT)
    axes = figure.add_subplot()
    seen = [*found.seen, *((plan.cpu, plan.memory) for plan in plans.values())]
    memory, cpu = [point[1] for point in seen], [point[0] for point in seen]
    axes.scatter(memory, cpu, s=9, color="0.75", label="plans looked at")
    label = "skyline" if found.complete else "skyline so far"
    corners = [(plan.memory, plan.cpu) for plan in found.plans]
    axes.plot(*zip(*corners, strict=True), ".-", color="black", linewidth=1, label=label)
    for mark, (name, plan) in zip(_MARKS, plans.items(), strict=False):
        axes.plot(plan.memory, plan.cpu, mark, markersize=9, fillstyle="none", label=name)
    _draw_budget(axes, budget)
    _name_corners(axes, found.plans)
    if _is_wide(memory):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter("")  # whose numbers would overlap
    if _is_wide(cpu):
        axes.set_yscale("log")
    axes.set_xlabel("memory")
    axes.set_ylabel("CPU per unit of time")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
    save_figure(figure, path, "plans")


def _draw_budget(axes: Axes, budget: Budget) -> None:
    if math.isfinite(budget.memory):
        axes.axvline(budget.memory, label="budget", color="C3", linestyle="--", linewidth=1)
    if math.isfinite(budget.cpu):
        axes.axhline(budget.cpu, color="C3", linestyle="--", linewidth=1)


def _name_corners(axes: Axes, plans: Sequence[Plan]) -> None:
    """Write their trees at plans of the skyline: at all, or at some from end to end."""
    by_memory = sorted(plans, key=lambda plan: plan.memory)
    few = min(len(by_memory), _MOST_NAMES)
    places = {round(n * (len(by_memory) - 1) / max(1, few - 1)) for n in range(few)}
    for place in sorted(places):
        plan = by_memory[place]
        axes.annotate(
            clipped(plan.tree, _MOST_LETTERS),
            (plan.memory, plan.cpu),
            (5, 4),
            textcoords="offset points",
            size=7,
        )


def _is_wide(values: list[float]) -> bool:
    """Whether few values would leave no room for the others on a linear axis."""
    least, most = min(values), max(values)
    return least > 0 and (most > _WIDE * least or most > _OUTLYING * median(values))
