"""What a query says, before anyone asks whether it makes sense: clauses, streams, windows.

Every node knows its place in the text. Names are as written; `bind` looks them up in schemas.
Expressions are in `term`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.cql.place import Place
    from braid.cql.term import Name, Written
    from braid.cql.window import WrittenWindow


@dataclass(frozen=True, slots=True)
class Star:
    """`*` or `stream.*`."""

    stream: Name | None
    place: Place


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One entry of SELECT, perhaps with an alias; a star never has one."""

    what: Written | Star
    alias: Name | None
    place: Place


@dataclass(frozen=True, slots=True)
class FromItem:
    """One entry of FROM: a stream, its window, perhaps an alias, and the columns of USING."""

    source: Name
    alias: Name | None
    window: WrittenWindow
    using: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Syntax:
    """One query, unbound: at least one entry in SELECT and two in FROM.

    `conditions` are those of ON, in order, and that of WHERE. `group` is None without GROUP BY.
    """

    select: tuple[SelectItem, ...]
    streams: tuple[FromItem, ...]
    conditions: tuple[Written, ...]
    group: tuple[Written, ...] | None
    having: Written | None

    def places(self) -> Iterator[Place]:
        """Where all that was read stands."""
        for item in self.select:
            yield item.what.place
            yield from (name.place for name in [item.alias] if name)
        for stream in self.streams:
            yield from (name.place for name in [stream.source, stream.alias] if name)
            yield from (name.place for name in stream.using)
        yield from (condition.place for condition in self.conditions)
        yield from (key.place for key in self.group or ())
        yield from (condition.place for condition in [self.having] if condition)
