"""Strategies: one policy per file, all behind `Strategy`, and a registry of their names.

Files that are no policy hold what several of them share: `spilling`, `relocating`, the rounds
and moves of Flux, the trend and the two halves of `auto`.
"""

from __future__ import annotations

from braid.control.strategy.contract import Strategy
from braid.control.strategy.registry import (
    STRATEGIES,
    make_strategy,
    parameters_of,
    parse_strategy,
)

__all__ = ["STRATEGIES", "Strategy", "make_strategy", "parameters_of", "parse_strategy"]
