"""Measure every system on one input, one after another, and report.

    python -m bench                                     # everything, about 15 minutes
    python -m bench --systems spark-default flink       # some of the systems
    python -m bench --small                             # a quick check that all of them run

The machine should be otherwise idle. How busy it is before each run is measured and reported.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bench import report
from bench.options import benchmark_parser, out_folder
from bench.peers.duckdb_join import count_results
from bench.systems import PEERS_STAMP, SYSTEMS, Runner, System, peers_interpreter
from bench.workload import SETTINGS, make_input

if TYPE_CHECKING:
    import argparse

    from bench.workload import Setting

DEFAULT_SETTINGS = ("150k", "1500k")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = benchmark_parser("bench", __doc__)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument(
        "--setting", nargs="+", choices=SETTINGS, default=list(DEFAULT_SETTINGS)
    )
    parser.add_argument("--scale", type=float, default=1.0, help="thins all rows out")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir(), "braid-bench"))
    parser.add_argument("--peers-python", type=Path, help="instead of making .venv-peers")
    arguments = parser.parse_args()
    if arguments.small:
        arguments.setting = ["small"]
    return arguments


def measure_all(
    systems: list[System], settings: list[Setting], runner: Runner
) -> list[report.Run]:
    """Run every system in every setting; a failure costs only its own line."""
    runs: list[report.Run] = []
    shared: dict[tuple[str, int], report.Run] = {}  # runs of systems that see no files
    for setting in settings:
        input_dir = make_input(setting, runner.work_dir / "input")
        for system in systems:
            known = shared.get((system.name, setting.rows_per_second))
            if known:
                runs.append(replace(known, setting=setting.name))
                continue
            try:
                run = measure_one(system, setting, input_dir, runner)
            except RuntimeError as problem:
                say(f"{setting.name:>12}  {problem}")
                continue
            runs.append(run)
            if not system.sees_files:
                shared[system.name, setting.rows_per_second] = run
    return runs


def measure_one(
    system: System, setting: Setting, input_dir: Path, runner: Runner
) -> report.Run:
    """Run one system, and count what it should have found."""
    prefix = system.prefixes[setting.name]
    expected = count_results(input_dir, prefix.batches) if system.joins else None
    busy_percent = psutil.cpu_percent(interval=1)  # nothing of ours runs at this moment
    say(f"{setting.name:>12}  {system.name}: {prefix.batches} batches")
    measurement = runner.run(system, input_dir, prefix)
    say(f"{'':>12}  {measurement.steady_rows_per_second:,.0f} rows/s in steady state")
    return report.Run(setting.name, measurement, expected, busy_percent)


def installed(systems: list[System], peers_python: Path | None) -> list[System]:
    """The systems that can run; those that cannot are named."""
    missing = [s.name for s in systems if s.in_peers_venv and peers_python is None]
    if missing:
        say(f"left out: {', '.join(missing)} (not installed: make {PEERS_STAMP})")
    return [system for system in systems if system.name not in missing]


def say(line: str) -> None:
    """Progress goes to standard error, so that the tables can be piped."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> None:
    """Measure, then report."""
    arguments = parse_arguments()
    arguments.work.mkdir(parents=True, exist_ok=True)
    out = out_folder(arguments)
    systems = [SYSTEMS[name] for name in arguments.systems]
    settings = [SETTINGS[name].scaled(arguments.scale) for name in arguments.setting]
    peers_python = arguments.peers_python
    if peers_python is None and any(system.in_peers_venv for system in systems):
        peers_python = peers_interpreter(install=not arguments.small)
    systems, asked = installed(systems, peers_python), len(systems)

    runs = measure_all(systems, settings, Runner(arguments.work, peers_python))
    if not runs:
        sys.exit("no system could be measured")
    report.print_tables(runs)
    report.draw(runs, out / "results.png")
    report.write_json(
        runs,
        out / "results.json",
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine={"cores": os.cpu_count(), "platform": platform.platform()},
        scale=arguments.scale,
        settings=[asdict(setting) for setting in settings],
    )
    say(f"written to {out}/results.json and results.png")
    wanted = len(systems) if arguments.small else asked
    if len(runs) < wanted * len(settings) or any(run.exact is False for run in runs):
        sys.exit("not every system ran and was exact")


if __name__ == "__main__":
    main()
