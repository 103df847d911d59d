"""An experiment as a picture: a panel per measure, a line per trial."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING

from braid.experiment.panels import finish_panel, new_panels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
        panel(axes, outcomes)
        finish_panel(axes)
    figure.savefig(path, dpi=130)


def draw_output(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """Results on time against the rows read."""
    for name, outcome in outcomes.items():
        axes.plot(_thousands(outcome.input_rows), _thousands(outcome.output_rows), label=name)
    _label(axes, "thousand results on time")


def draw_memory(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """Bytes in memory, of all workers together."""
    for name, outcome in outcomes.items():
        total = [sum(each) / _MB for each in outcome.memory_bytes]
        axes.plot(_thousands(outcome.input_rows), total, label=name)
    _label(axes, "MB of state in memory")


def draw_worker_memory(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """Bytes in memory, of each worker."""
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


def draw_results_by_time(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """Results so far against the time that the batches took."""
    for name, outcome in outcomes.items():
        seconds = [taken_ms / 1000 for taken_ms in accumulate(outcome.taken_ms)]
        results = [rows / 1e6 for rows in outcome.output_rows]
        axes.plot(seconds, results, label=name)
    axes.set_xlabel("seconds of work")
    axes.set_ylabel("million results")


def draw_state(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """All state after each batch."""
    for name, outcome in outcomes.items():
        _plot_batches(axes, name, outcome, [size / _MB for size in outcome.state_bytes])
    axes.set_ylabel("MB of state")


def draw_state_rows(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """The same in rows."""
    for name, outcome in outcomes.items():
        _plot_batches(axes, name, outcome, _thousands(outcome.state_rows))
    axes.set_ylabel("thousand rows of state")


def draw_joined_rows(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """Rows of joined streams that are kept after each batch."""
    for name, outcome in outcomes.items():
        _plot_batches(axes, name, outcome, _thousands(outcome.joined_rows))
    axes.set_ylabel("thousand rows of joined streams")


def draw_batch_rows(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """Results of each batch."""
    for name, outcome in outcomes.items():
        _plot_batches(axes, name, outcome, _thousands(outcome.batch_rows))
    axes.set_ylabel("thousand results of a batch")


def draw_batch_times(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """How long each batch took, but for the first, in which everything starts."""
    for name, outcome in outcomes.items():
        _plot_batches(axes, name, outcome, [math.nan, *outcome.taken_ms[1:]])
    axes.set_ylabel("ms of a batch")


def _plot_batches(axes: Axes, name: str, outcome: Outcome, values: Sequence[float]) -> None:
    """A line over the batches; where the plan was changing, its background is shaded."""
    (line,) = axes.plot(range(len(values)), values, label=name)
    for change in outcome.changes:
        axes.axvspan(change.lower, change.upper, color=line.get_color(), alpha=0.1, linewidth=0)
    axes.set_xlabel("batch")


def draw_cleanup(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """Results of the clean-up, by worker."""
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
