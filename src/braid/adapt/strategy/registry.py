"""Strategies by their names, and how one is made with parameters."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from braid.adapt.checks import require_known
from braid.adapt.strategy.active_disk import ActiveDisk
from braid.adapt.strategy.auto import Auto
from braid.adapt.strategy.flux_hybrid import FluxHybrid
from braid.adapt.strategy.flux_load import FluxLoad
from braid.adapt.strategy.flux_memory import FluxMemory
from braid.adapt.strategy.lazy_disk import LazyDisk
from braid.adapt.strategy.none import NoAdaptation
from braid.adapt.strategy.relocate_only import RelocateOnly
from braid.adapt.strategy.spill_only import SpillOnly

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


def make_strategy(name: str, **parameters: Any) -> Strategy:
    """The strategy of some name, with its defaults where no parameter is given."""
    known = parameters_of(name)
    for parameter in parameters:
        require_known(f"parameter of {name}", parameter, known)
    return STRATEGIES[name](**parameters)


def parameters_of(name: str) -> dict[str, Any]:
    """A strategy's parameters with their defaults, without what it remembers.

    >>> parameters_of("relocate-only")
    {'theta_r': 0.8, 'tau_ms': 45000}
    """
    require_known("strategy", name, STRATEGIES)
    default: Any = STRATEGIES[name]()
    return {
        setting.name: getattr(default, setting.name)
        for setting in fields(default)
        if not setting.metadata.get("memory")
    }
