"""Options that every benchmark takes."""

from __future__ import annotations

import argparse
from pathlib import Path


def benchmark_parser(module: str, description: str) -> argparse.ArgumentParser:
    """A parser with `--out`, and with `--small`, which every benchmark obeys in its own way."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=description.split("\n", 1)[0]
    )
    parser.add_argument(
        "--small",
        action="store_true",
        help="so few rows that it takes a minute: shows that it runs, and measures nothing",
    )
    parser.add_argument("--out", type=Path, help="folder for the figures [bench-results]")
    return parser


def out_folder(arguments: argparse.Namespace) -> Path:
    """Where the figures go; those of a small run do not replace those of a real one."""
    folder = arguments.out or Path("bench-results", "small" if arguments.small else "")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
