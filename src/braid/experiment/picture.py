"""An experiment as a picture: a panel per measure, a line per trial."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING

from braid.experiment.panels import finish_panel, new_panels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from braid.experiment.outcome import Outcome
    from braid.experiment.setup import Experiment, Panel

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


def _by_batch(what: str, values: Callable[[Outcome], Sequence[float]]) -> Panel:
    """A line over the batches; where the plan was changing, its background is shaded."""

    def draw(axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
        for name, outcome in outcomes.items():
            curve = values(outcome)
            (line,) = axes.plot(range(len(curve)), curve, label=name)
            for change in outcome.changes:
                span = change.lower, change.upper
                axes.axvspan(*span, color=line.get_color(), alpha=0.1, linewidth=0)
        axes.set_xlabel("batch")
        axes.set_ylabel(what)

    return draw


def _thousands(values: tuple[int, ...]) -> list[float]:
    return [value / 1000 for value in values]


draw_state = _by_batch("MB of state", lambda each: [size / _MB for size in each.state_bytes])
draw_state_rows = _by_batch("thousand rows of state", lambda each: _thousands(each.state_rows))
draw_joined_rows = _by_batch(
    "thousand rows of joined streams", lambda each: _thousands(each.joined_rows)
)
draw_batch_rows = _by_batch(
    "thousand results of a batch", lambda each: _thousands(each.batch_rows)
)
# But for the first, in which everything starts.
draw_batch_times = _by_batch("ms of a batch", lambda each: [math.nan, *each.taken_ms[1:]])


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
