"""Changing a plan while it runs: which states go over, and what becomes of the others."""

from __future__ import annotations

from braid.migrate.adopt import adopted
from braid.migrate.change import Way, begun, ended, is_over, obstacle, way_of

__all__ = ["Way", "adopted", "begun", "ended", "is_over", "obstacle", "way_of"]
