"""Queries whose cluster or clock does what a test wants of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from braid import ContinuousQuery


class InPlace:
    """A thing with some methods in place of its own; the rest is left as it is."""

    def __init__(self, inner: Any, **methods: Callable[..., Any]) -> None:
        self._inner, self._methods = inner, methods

    def __getattr__(self, name: str) -> Any:
        return self._methods[name] if name in self._methods else getattr(self._inner, name)


def with_sources(query: ContinuousQuery, **methods: Callable[..., Any]) -> ContinuousQuery:
    """A query whose sources have some other methods."""
    return replace(query, sources=InPlace(query.sources, **methods))


def with_cluster(query: ContinuousQuery, wrap: Callable[[Any], Any]) -> ContinuousQuery:
    """A query that runs on another cluster, made of its own."""
    own = query.sources.supply

    def supply(checkpoint: Any) -> Any:
        made = own(checkpoint)
        return InPlace(made, cluster=lambda *args, **more: wrap(made.cluster(*args, **more)))

    return with_sources(query, supply=supply)
