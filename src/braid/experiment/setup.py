"""What an experiment is: trials with different settings, and what to compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from braid.experiment.outcome import Outcome

Rows = Sequence[tuple[str, str, str]]
"""Of a table: what is compared, ours, the paper's."""

Panel: TypeAlias = "Callable[[Axes, Mapping[str, Outcome]], None]"
"""Draws one part of a picture from the outcomes, by the trials' names."""


class Input(Protocol):
    """Streams, and the query over them. Equal ones are the same streams, written once."""

    @property
    def streams(self) -> tuple[str, ...]:
        """Their names."""

    @property
    def query(self) -> str:
        """The query's text."""

    @property
    def groups(self) -> int:
        """How many partition groups the engine has for it."""

    def write(self, folder: Path) -> None:
        """Write a folder per stream, with a file per batch."""

    def __hash__(self) -> int:
        """Inputs are values."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run: what it reads, and the options to start the engine with."""

    name: str
    input: Input
    workers: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure of a paper, to be made again.

    `compare` makes the table from the outcomes, by the trials' names; `panels` are what to
    draw. Where times are compared, a `rehearsal` runs before all others, as Java is slow until
    it has compiled what it runs; nobody looks at what comes of it. Where they are compared
    closely, trials run `in_turns`, a batch each.
    """

    name: str
    title: str
    source: str
    trials: tuple[Trial, ...]
    compare: Callable[[Mapping[str, Outcome]], Rows]
    panels: tuple[Panel, ...]
    rehearsal: Trial | None = None
    in_turns: bool = False
