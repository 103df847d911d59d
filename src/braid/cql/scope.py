"""Which column a written name means, given the streams of FROM and their schemas.

Names match as in Spark: one spelled exactly so, or else one that differs in case alone. What
comes out is always the schema's own spelling.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from braid.cql.syntax import ColumnName, FromItem, Name
    from braid.model.errors import QueryError
    from braid.model.query import Schemas


class ColumnId(NamedTuple):
    """One column of one stream, numbered by its place in FROM."""

    stream: int
    column: str


def matching(written: str, names: Sequence[str]) -> list[int]:
    """Numbers of the names that a written one may mean.

    >>> matching("K", ["k", "K"]), matching("K", ["k", "j"])
    ([1], [0])
    """
    exact = [number for number, name in enumerate(names) if name == written]
    wide = written.lower()
    return exact or [number for number, name in enumerate(names) if name.lower() == wide]


def nearest(written: str, names: Sequence[str]) -> str:
    """A hint at the name that was meant, or else at all that there are.

    >>> nearest("ordres", ["orders", "users"])
    "did you mean 'orders'?"
    """
    lower = {name.lower(): name for name in reversed(names)}
    close = get_close_matches(written.lower(), lower, n=1)
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"known: {shown}" if names else "there are none"


@dataclass(frozen=True, slots=True)
class Scope:
    """The streams of FROM, in order; aliases differ in more than case."""

    sources: tuple[str, ...]
    aliases: tuple[str, ...]
    schemas: tuple[pa.Schema, ...]

    def stream(self, name: Name) -> int:
        """The stream that a name before a dot means."""
        found = matching(name.text, self.aliases)
        if found:
            return found[0]
        hidden = matching(name.text, self.sources)
        hint = f"here it is called {self.aliases[hidden[0]]!r}" if hidden else None
        raise name.place.error(
            f"unknown stream {name.text!r}", hint=hint or nearest(name.text, self.aliases)
        )

    def column(self, name: ColumnName) -> ColumnId:
        """The column that a name means, of the stream before the dot or of any."""
        among = range(len(self.aliases)) if name.stream is None else [self.stream(name.stream)]
        found = [
            ColumnId(each, self.schemas[each].names[number])
            for each in among
            for number in matching(name.column.text, self.schemas[each].names)
        ]
        if len(found) == 1:
            return found[0]
        raise self._ambiguous(name, found) if found else self._unknown(name, among)

    def _unknown(self, name: ColumnName, among: Sequence[int]) -> QueryError:
        columns = [column for stream in among for column in self.schemas[stream].names]
        hint = nearest(name.column.text, list(dict.fromkeys(columns)))
        of = f" of stream {self.aliases[among[0]]!r}" if name.stream else ""
        return name.column.place.error(f"unknown column {name.column.text!r}{of}", hint=hint)

    def _ambiguous(self, name: ColumnName, found: Sequence[ColumnId]) -> QueryError:
        hint = f"it may mean {' or '.join(self.spell(column) for column in found)}"
        if len(set(found)) < len(found):
            hint = "its stream has two columns of that name; rename one before the query"
        return name.place.error(f"ambiguous column {name.column.text!r}", hint=hint)

    def type_of(self, column: ColumnId) -> pa.DataType:
        """The Arrow type of a column."""
        return self.schemas[column.stream].field(column.column).type

    def spell(self, column: ColumnId) -> str:
        """A column as people write it."""
        return f"{self.aliases[column.stream]}.{column.column}"


def open_scope(streams: Sequence[FromItem], schemas: Schemas) -> Scope:
    """Look up the streams of FROM."""
    sources = tuple(_source(item.source, schemas) for item in streams)
    aliases: list[str] = []
    for item, source in zip(streams, sources, strict=True):
        alias = item.alias.text if item.alias else source
        if alias.lower() in (taken.lower() for taken in aliases):
            raise (item.alias or item.source).place.error(
                f"two streams are called {alias!r}",
                hint=f"give one of them an alias of its own, such as {source} … AS {source}2",
            )
        aliases.append(alias)
    return Scope(sources, tuple(aliases), tuple(schemas[source] for source in sources))


def _source(name: Name, schemas: Schemas) -> str:
    known = list(schemas)
    found = matching(name.text, known)
    if not found:
        hint = nearest(name.text, known)
        raise name.place.error(f"unknown stream {name.text!r}", hint=hint)
    if len(found) > 1:
        choices = " or ".join(known[number] for number in found)
        raise name.place.error(f"ambiguous stream {name.text!r}", hint=f"it may mean {choices}")
    return known[found[0]]
