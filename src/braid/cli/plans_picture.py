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

_WIDTH, _HEIGHT, _LINE = 7.0, 5.0, 0.16  # inches; the last of a line of the list below
_MARKS = "os^Dv*"
_WIDE, _OUTLYING = 30.0, 5.0
"""Beyond such ratios of the most to the least and to the median, an axis is logarithmic."""
_BELOW, _ABOVE, _LEAST = 0.06, 0.35, 0.02
"""How much an axis has around what matters: parts of its length, or at least of the value."""
_MOST_NUMBERS, _MOST_LETTERS = 12, 95
_APART = 0.2  # inches between numbers


def draw_plans(plans: Mapping[str, Plan], found: Skyline, budget: Budget, path: Path) -> None:
    """Write the picture; the file's ending says in which format.

    It reaches as far as the skyline, the budget and what strategies chose do, and has of the
    other plans those that are not far beyond.
    """
    by_memory = sorted(found.plans, key=lambda plan: plan.memory)
    count = min(len(by_memory), _MOST_NUMBERS)
    figure = new_figure(path, "plans", _WIDTH, _HEIGHT + _LINE * count)
    axes = figure.add_subplot()
    chosen = [*by_memory, *plans.values()]
    memory = [x for x in (*(p.memory for p in chosen), budget.memory) if math.isfinite(x)]
    cpu = [y for y in (*(p.cpu for p in chosen), budget.cpu) if math.isfinite(y)]
    axes.set_xscale("log" if _is_wide(memory) else "linear")
    axes.set_yscale("log" if _is_wide(cpu) else "linear")
    axes.xaxis.set_minor_formatter("")  # the numbers of a logarithmic one would overlap
    axes.set_xlim(_limits(memory))
    axes.set_ylim(_limits(cpu))
    _draw_others(axes, found)
    label = "skyline" if found.complete else "skyline so far"
    corners = [(plan.memory, plan.cpu) for plan in by_memory]
    axes.plot(*zip(*corners, strict=True), ".-", color="black", linewidth=1, label=label)
    for mark, (name, plan) in zip(_MARKS, plans.items(), strict=False):
        axes.plot(plan.memory, plan.cpu, mark, markersize=9, fillstyle="none", label=name)
    _draw_budget(axes, budget)
    names = _number_corners(axes, by_memory)
    figure.supxlabel("\n".join(names), x=0.02, ha="left", size=7)
    axes.set_xlabel("memory")
    axes.set_ylabel("CPU per unit of time")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
    save_figure(figure, path, "plans")


def _draw_others(axes: Axes, found: Skyline) -> None:
    """Draw all plans that were looked at, but for those beyond the axes, which are counted."""
    (_, right), (_, top) = axes.get_xlim(), axes.get_ylim()
    near = [(memory, cpu) for cpu, memory in found.seen if memory <= right and cpu <= top]
    beyond = len(found.seen) - len(near)
    label = f"plans looked at; {beyond:,} beyond" if beyond else "plans looked at"
    axes.scatter([x for x, _ in near], [y for _, y in near], s=9, color="0.75", label=label)


def _draw_budget(axes: Axes, budget: Budget) -> None:
    if math.isfinite(budget.memory):
        axes.axvline(budget.memory, label="budget", color="C3", linestyle="--", linewidth=1)
    if math.isfinite(budget.cpu):
        axes.axhline(budget.cpu, color="C3", linestyle="--", linewidth=1)


def _number_corners(axes: Axes, by_memory: Sequence[Plan]) -> list[str]:
    """Write numbers at plans of the skyline that are not too close; their trees by number."""
    last = len(by_memory) - 1
    few = min(len(by_memory), _MOST_NUMBERS)
    names: list[str] = []
    numbered: list[tuple[float, float]] = []
    for place in sorted({round(n * last / max(1, few - 1)) for n in range(few)}):
        plan = by_memory[place]
        across, up = (axes.transScale + axes.transLimits).transform((plan.memory, plan.cpu))
        here = across * _WIDTH, up * _HEIGHT
        if any(math.dist(here, there) < _APART for there in numbered):
            continue
        numbered.append(here)
        names.append(f"{len(numbered)}  {clipped(plan.tree, _MOST_LETTERS)}")
        axes.annotate(
            str(len(numbered)),
            (plan.memory, plan.cpu),
            (5, 5),
            textcoords="offset points",
            size=8,
        )
    return names


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Where an axis begins and ends."""
    least, most = min(values), max(values)
    if _is_wide(values):
        length = most / least
        return least / length**_BELOW, most * length**_ABOVE
    length = max(most - least, _LEAST * most) or 1.0
    return least - _BELOW * length, most + _ABOVE * length


def _is_wide(values: Sequence[float]) -> bool:
    """Whether few values would leave no room for the others on a linear axis."""
    least, most = min(values), max(values)
    return least > 0 and (most > _WIDE * least or most > _OUTLYING * median(values))
