"""Strategies by their names, and how one is made with parameters.

>>> parse_strategy("relocate-only tau_ms=500")
RelocateOnly(theta_r=0.8, tau_ms=500)
>>> parameters_of("relocate-only")
{'theta_r': 0.8, 'tau_ms': 45000}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.control.strategy.active_disk import ActiveDisk
from braid.control.strategy.auto import Auto
from braid.control.strategy.flux_hybrid import FluxHybrid
from braid.control.strategy.flux_load import FluxLoad
from braid.control.strategy.flux_memory import FluxMemory
from braid.control.strategy.lazy_disk import LazyDisk
from braid.control.strategy.none import NoAdaptation
from braid.control.strategy.relocate_only import RelocateOnly
from braid.control.strategy.spill_only import SpillOnly
from braid.model.choices import Choices

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.control.strategy.contract import Strategy

STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "auto": Auto,
    "none": NoAdaptation,
    "spill-only": SpillOnly,
    "relocate-only": RelocateOnly,
    "lazy-disk": LazyDisk,
    "active-disk": ActiveDisk,
    "flux-load": FluxLoad,
    "flux-memory": FluxMemory,
    "flux-hybrid": FluxHybrid,
}


_CHOICES = Choices("strategy", STRATEGIES)

make_strategy = _CHOICES.make
parse_strategy = _CHOICES.parse
parameters_of = _CHOICES.parameters_of
