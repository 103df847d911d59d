"""The command line: arguments in, one call, text out."""

from __future__ import annotations

from braid.cli.app import main

__all__ = ["main"]
