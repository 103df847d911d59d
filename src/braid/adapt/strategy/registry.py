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
from braid.model.errors import BraidError

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


def parse_strategy(text: str, **others: Any) -> Strategy:
    """Read a strategy's name and some of its parameters; `others` go before their defaults.

    >>> parse_strategy("relocate-only tau_ms=500")
    RelocateOnly(theta_r=0.8, tau_ms=500)
    """
    name, *given = text.split() or [""]
    known = parameters_of(name)
    parameters = dict(others)
    for each in given:
        parameter, _, value = each.partition("=")
        require_known(f"parameter of {name}", parameter, known)
        parameters[parameter] = _value(each, value, type(known[parameter]))
    return make_strategy(name, **parameters)


def _value(text: str, value: str, kind: type) -> Any:
    """A parameter's value, of the type that its default has."""
    try:
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        return value if kind is str else _number(value)
    except (KeyError, ValueError):
        wanted = {bool: "true or false", str: "a word"}.get(kind, "a number")
        raise BraidError(
            f"cannot read {text!r}", hint=f"write the parameter's name, '=', and {wanted}"
        ) from None


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


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
