"""What a query says, before anyone asks whether it makes sense: names, windows, equalities.

Every node knows its place in the text. Names are as written; `bind` looks them up in schemas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.cql.place import Place


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier, without its quotes."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class ColumnName:
    """`column` or `stream.column`."""

    stream: Name | None
    column: Name
    place: Place


@dataclass(frozen=True, slots=True)
class Star:
    """`*` or `stream.*`."""

    stream: Name | None
    place: Place


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One entry of SELECT, perhaps with an alias; a star never has one."""

    what: ColumnName | Star
    alias: Name | None
    place: Place


@dataclass(frozen=True, slots=True)
class FromItem:
    """One entry of FROM: a stream, its window, perhaps an alias."""

    source: Name
    alias: Name | None
    window_us: int


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right`, one conjunct of WHERE."""

    left: ColumnName
    right: ColumnName
    place: Place


@dataclass(frozen=True, slots=True)
class Syntax:
    """One query, unbound: at least one entry in SELECT and two in FROM."""

    select: tuple[SelectItem, ...]
    streams: tuple[FromItem, ...]
    equalities: tuple[Equality, ...]

    def places(self) -> Iterator[Place]:
        """Where all columns, stars, streams and aliases stand."""
        for item in self.select:
            yield item.what.place
            yield from (name.place for name in [item.alias] if name)
        for stream in self.streams:
            yield from (name.place for name in [stream.source, stream.alias] if name)
        for equality in self.equalities:
            yield equality.left.place
            yield equality.right.place
