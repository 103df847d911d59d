"""What an experiment is: some streams, trials with different settings, and what to compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from braid.workload import PartitionSpec, StreamSpec, WorkloadSpec

if TYPE_CHECKING:
    from braid.experiment.outcome import Outcome
    from braid.workload import Phase

STREAMS = ("a", "b", "c")
PARTITIONS = 60
"""As many as the engine has groups in these experiments, and a partition is a group."""

Rows = Sequence[tuple[str, str, str]]
"""Of a table: what is compared, ours, the paper's."""


@dataclass(frozen=True, slots=True)
class Input:
    """Three streams for a three-way join without windows, whose state only grows.

    Rates are in tuples per second of each stream; a batch is a second.
    """

    partitions: tuple[PartitionSpec, ...]
    rate: float = 3000.0
    seconds: int = 30
    phases: tuple[Phase, ...] = ()

    def spec(self) -> WorkloadSpec:
        """The streams as the generator takes them."""
        streams = tuple(StreamSpec(name, self.rate, self.phases) for name in STREAMS)
        return WorkloadSpec(streams, self.partitions, seed=1)


@dataclass(frozen=True, slots=True)
class Trial:
    """One run: the options to start the engine with."""

    name: str
    workers: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure of a paper, to be made again.

    `compare` makes the table from the outcomes, by the trials' names. `panels` say what to
    draw: "output", "memory" or "worker memory" against the input, "cleanup" as bars.
    """

    name: str
    title: str
    source: str
    input: Input
    trials: tuple[Trial, ...]
    compare: Callable[[Mapping[str, Outcome]], Rows]
    panels: tuple[str, ...] = ("output",)
