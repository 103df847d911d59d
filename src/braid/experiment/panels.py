"""A row of panels to draw in, as all pictures of experiments are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.model.errors import BraidError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 3.8  # inches


def new_panels(count: int, width: float) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels beside one another, each of some inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise BraidError(
            "matplotlib is not installed, so the picture cannot be drawn",
            hint="pip install 'braid[draw]'",
        ) from None
    figure = Figure(figsize=(width * count, _HEIGHT), layout="constrained")
    (row,) = figure.subplots(1, count, squeeze=False)
    return figure, list(row)


def finish_panel(axes: Axes) -> None:
    """What every panel has once it is drawn: a legend, and no frame."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
