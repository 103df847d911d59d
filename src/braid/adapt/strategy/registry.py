"""Strategies by their names, and how one is made with parameters.

>>> parse_strategy("relocate-only tau_ms=500")
RelocateOnly(theta_r=0.8, tau_ms=500)
>>> parameters_of("relocate-only")
{'theta_r': 0.8, 'tau_ms': 45000}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.adapt.strategy.active_disk import ActiveDisk
from braid.adapt.strategy.auto import Auto
from braid.adapt.strategy.flux_hybrid import FluxHybrid
from braid.adapt.strategy.flux_load import FluxLoad
from braid.adapt.strategy.flux_memory import FluxMemory
from braid.adapt.strategy.lazy_disk import LazyDisk
from braid.adapt.strategy.none import NoAdaptation
from braid.adapt.strategy.relocate_only import RelocateOnly
from braid.adapt.strategy.spill_only import SpillOnly
from braid.model.choices import Choices

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid.adapt.strategy.contract import Strategy

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
