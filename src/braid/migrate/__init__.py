"""Changing a plan while it runs: which states go over, and what becomes of the others."""

from __future__ import annotations

from braid.migrate.change import Start, Way, begun, ended, is_over, way_of

__all__ = ["Start", "Way", "begun", "ended", "is_over", "way_of"]
