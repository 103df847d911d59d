"""An experiment as a picture: a panel per measure, a line per trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.experiment.panels import finish_panel, new_panels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from matplotlib.axes import Axes

    from braid.experiment.outcome import Outcome
    from braid.experiment.setup import Experiment

_WIDTH = 5.2  # inches of a panel
_MB = 1 << 20


def draw_outcomes(experiment: Experiment, outcomes: Mapping[str, Outcome], path: Path) -> None:
    """Write the picture of an experiment."""
    figure, row = new_panels(len(experiment.panels), _WIDTH)
    figure.suptitle(experiment.title, fontsize=12)
    for axes, panel in zip(row, experiment.panels, strict=True):
        _PANELS[panel](axes, outcomes)
        finish_panel(axes)
    figure.savefig(path, dpi=130)


def _draw_output(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    for name, outcome in outcomes.items():
        axes.plot(_thousands(outcome.input_rows), _thousands(outcome.output_rows), label=name)
    _label(axes, "thousand results on time")


def _draw_memory(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    for name, outcome in outcomes.items():
        total = [sum(each) / _MB for each in outcome.memory_bytes]
        axes.plot(_thousands(outcome.input_rows), total, label=name)
    _label(axes, "MB of state in memory")


def _draw_worker_memory(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    styles = ("-", "--", ":", "-.")
    for number, (name, outcome) in enumerate(outcomes.items()):
        for worker, sizes in enumerate(zip(*outcome.memory_bytes, strict=True)):
            axes.plot(
                _thousands(outcome.input_rows),
                [size / _MB for size in sizes],
                styles[worker % len(styles)],
                color=f"C{number}",
                label=f"{name}, worker {worker}",
            )
    _label(axes, "MB of state in memory")


def _draw_cleanup(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    shown = {name: each for name, each in outcomes.items() if each.all_cleanup_rows}
    workers = max((len(each.cleanup_rows) for each in shown.values()), default=0)
    for worker in range(workers):
        places = [number + 0.8 * worker / workers for number in range(len(shown))]
        heights = [each.cleanup_rows[worker] / 1000 for each in shown.values()]
        axes.bar(places, heights, 0.8 / workers, label=f"worker {worker}")
    axes.set_xticks([number + 0.4 - 0.4 / max(1, workers) for number in range(len(shown))])
    axes.set_xticklabels(shown)
    axes.set_ylabel("thousand results of the clean-up")


def _label(axes: Axes, what: str) -> None:
    axes.set_xlabel("thousand rows read")
    axes.set_ylabel(what)


def _thousands(values: tuple[int, ...]) -> list[float]:
    return [value / 1000 for value in values]


_PANELS: Mapping[str, Callable[[Axes, Mapping[str, Outcome]], None]] = {
    "output": _draw_output,
    "memory": _draw_memory,
    "worker memory": _draw_worker_memory,
    "cleanup": _draw_cleanup,
}
