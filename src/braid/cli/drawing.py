"""Figures that are drawn into a file, and what can go wrong with that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.model.errors import BraidError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

_ENDINGS = (".svg", ".png", ".pdf")


def new_figure(path: Path, what: str, width: float, height: float) -> Figure:
    """A figure of some inches, once it is clear that it can be drawn into the file.

    The file's ending says in which format. `what` is the picture's name in errors.
    """
    if path.suffix.lower() not in _ENDINGS:
        raise BraidError(
            f"cannot draw the {what} into {path}: its ending names no format",
            hint=f"end its name in {' or '.join(_ENDINGS)}",
        )
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise BraidError(
            f"drawing the {what} needs matplotlib", hint="install it: pip install 'braid[draw]'"
        ) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: Path, what: str) -> None:
    """Write the file."""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise BraidError(
            f"cannot draw the {what} into {path}: {error.strerror}",
            hint="name a file in a folder that you may write to",
        ) from None
