"""Changing a plan while it runs: which states go over, and what becomes of the others."""

from __future__ import annotations

from braid.migrate.change import (
    Start,
    Way,
    begun,
    ended,
    given_up,
    hopelessness,
    is_over,
    resumed,
    way_of,
)
from braid.migrate.cost import ChangeCost, Circumstances, cost_of_change, costs_of_plans

__all__ = [
    "ChangeCost",
    "Circumstances",
    "Start",
    "Way",
    "begun",
    "cost_of_change",
    "costs_of_plans",
    "ended",
    "given_up",
    "hopelessness",
    "is_over",
    "resumed",
    "way_of",
]
