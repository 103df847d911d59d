"""What a system reports, how its steady rate is taken, and the arguments that all take.

A run is a *progress curve*: pairs of (seconds since the query started, input rows whose results
are out). The steady rate is the slope of that curve from the end of the warm-up to the end of
the run. So process and JVM start, compilation, and the time in which the window is not yet full
stay out of it, by one rule for every system. The rule counts rows, not seconds: a slow system
does not get to call its warm-up its steady state.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.workload import count_input_rows

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Progress:
    """A finished run: its curve, and how many result rows it wrote."""

    curve: Sequence[tuple[float, int]]  # (seconds, input rows), both cumulative and rising
    output_rows: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """One system over one input; the line that its process prints."""

    system: str
    input_rows: int
    output_rows: int | None
    seconds: float
    steady_rows: int  # how many of the input rows the steady rate was taken over
    steady_rows_per_second: float
    notes: str = ""

    def print(self) -> None:
        """Write the line that `bench.__main__` looks for."""
        sys.stdout.write(json.dumps(asdict(self)) + "\n")
        sys.stdout.flush()


def measure(
    system: str, progress: Progress, arguments: argparse.Namespace, notes: str = ""
) -> Measurement:
    """Turn a finished run into its measurement, leaving the warm-up out of the rate."""
    warm_up_rows = count_input_rows(arguments.input_dir, arguments.warm_up)
    steady_rows, steady_seconds = steady_part(progress.curve, warm_up_rows)
    seconds, input_rows = progress.curve[-1]
    return Measurement(
        system=system,
        input_rows=input_rows,
        output_rows=progress.output_rows,
        seconds=round(seconds, 3),
        steady_rows=steady_rows,
        steady_rows_per_second=round(steady_rows / steady_seconds, 1),
        notes=notes,
    )


def steady_part(curve: Sequence[tuple[float, int]], warm_up_rows: int) -> tuple[int, float]:
    """Rows and seconds from the end of the warm-up to the end of the run.

    Between two samples the curve is taken as a step, so the part starts at the first sample
    that has the warm-up behind it.

    >>> steady_part([(10.0, 100), (12.0, 200), (16.0, 400)], warm_up_rows=150)
    (200, 4.0)
    >>> steady_part([(2.0, 400)], warm_up_rows=0)
    (400, 2.0)
    """
    end_seconds, end_rows = curve[-1]
    start_seconds, start_rows = next(
        sample for sample in [(0.0, 0), *curve] if sample[1] >= warm_up_rows
    )
    if start_rows >= end_rows:
        raise ValueError(f"cannot take a steady rate: all {end_rows} rows are warm-up")
    return end_rows - start_rows, end_seconds - start_seconds


def argument_parser(description: str) -> argparse.ArgumentParser:
    """The arguments of every script that runs one system."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("input_dir", type=Path, help="made by bench.workload")
    parser.add_argument("output_dir", type=Path, help="scratch space; must not exist yet")
    parser.add_argument("--batches", type=int, help="read only the first so many files")
    parser.add_argument("--warm-up", type=int, default=0, help="batches left out of the rate")
    return parser
