"""Pictures of the studies of optimizers: plans as dots, strategies as lines."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

from braid.experiment.panels import finish_panel, new_panels

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.axes import Axes

    from braid.experiment.zhu_optimizers import Distributions, SetOfPlans, StrategyTrials

_WIDTH = 4.6  # inches of a panel


def draw_sets(found: Mapping[int, SetOfPlans], path: Path) -> None:
    """A panel for each set: all plans, the best of them, and the two extremes."""
    figure, row = new_panels(len(found), _WIDTH)
    for axes, (number, each) in zip(row, found.items(), strict=True):
        seen = sorted(set(each.best.seen))
        axes.plot([m for _, m in seen], [c for c, _ in seen], ".", color="0.75", label="plans")
        best = [(plan.memory, plan.cpu) for plan in each.best.plans]
        axes.plot(*zip(*best, strict=True), ".-", color="black", linewidth=1, label="skyline")
        for name, plan, mark in (("mjoin", each.mjoin, "o"), ("binary", each.binary, "s")):
            axes.plot(plan.memory, plan.cpu, mark, fillstyle="none", markersize=9, label=name)
        for plan in each.best.plans:
            place = plan.memory, plan.cpu
            axes.annotate(plan.tree, place, (6, 5), textcoords="offset points", size=7)
        axes.set_title(f"set {number}", fontsize=10)
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter("")  # whose numbers would overlap
        _label(axes, "rows in states", "operations per second")
    figure.savefig(path, dpi=130)


def draw_strategies(found: StrategyTrials, path: Path) -> None:
    """How many are qualified, and how long it takes, against the number of streams."""
    figure, (share, time) = new_panels(2, _WIDTH)
    for name, by_streams in found.items():
        streams = list(by_streams)
        share.plot(streams, [t.per_cent for t in by_streams.values()], ".-", label=name)
        time.plot(streams, [mean(t.taken_ms) for t in by_streams.values()], ".-", label=name)
    time.set_yscale("log")
    for axes in (share, time):
        axes.set_xticks(range(4, max(found["mjoin-init"]) + 1, 4))
    _label(share, "streams", "% qualified")
    _label(time, "streams", "ms on average")
    figure.savefig(path, dpi=130)


def draw_distributions(found: Distributions, path: Path) -> None:
    """A panel for each number of streams: the qualified plans of both strategies."""
    figure, row = new_panels(len(found), _WIDTH)
    for axes, (streams, plans) in zip(row, found.items(), strict=True):
        for (name, each), mark in zip(plans.items(), "ox", strict=True):
            memory, cpu = [plan.memory for plan in each], [plan.cpu for plan in each]
            axes.plot(memory, cpu, mark, fillstyle="none", markersize=4, label=name)
        axes.set_title(f"{streams} streams", fontsize=10)
        _label(axes, "rows in states", "operations per second")
    figure.savefig(path, dpi=130)


def _label(axes: Axes, across: str, upwards: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(upwards)
    finish_panel(axes)
