"""Which column a written name means, given the streams of FROM and their schemas.

Names match as in Spark: one spelled exactly so, or else one that differs in case alone. What
comes out is always the schema's own spelling.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from braid.cql.term import ColumnName, Name
from braid.model.query import WINDOW_END

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.cql.syntax import FromItem
    from braid.model.errors import QueryError
    from braid.model.query import Schemas


class Found(NamedTuple):
    """One column of one stream, numbered by its place in FROM, and the fields asked of it."""

    stream: int
    column: str
    fields: tuple[str, ...]


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
    close = get_close_matches(written.lower()[:100], lower, n=1)
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"known: {shown}" if names else "there are none"


@dataclass(frozen=True, slots=True)
class Scope:
    """The streams of FROM, in order; aliases differ in more than case.

    `merged` are the columns that USING makes one: of each stream, those that are equal to a
    column of that name in a stream before it.
    """

    sources: tuple[str, ...]
    aliases: tuple[str, ...]
    schemas: tuple[pa.Schema, ...]
    merged: tuple[frozenset[str], ...]

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

    def column(self, name: ColumnName) -> Found:
        """The column that a name means, of the stream before the dot or of any."""
        first, *rest = name.parts
        if rest and (matching(first.text, self.aliases) or not self._among_all(first.text)):
            stream = self.stream(first)
            found = [(stream, column) for column in self._in(stream, rest[0].text)]
            return self._one(name, rest[0], found, rest[1:], [stream])
        found = self._among_all(first.text)
        return self._one(name, first, found, rest, range(len(self.aliases)))

    def is_known(self, name: ColumnName) -> bool:
        """Whether a name without a dot means one column, and no two."""
        return len(name.parts) > 1 or len(self._among_all(name.parts[0].text)) == 1

    def column_of(self, stream: int, name: Name) -> ColumnName:
        """A column of a stream, by its name alone."""
        alias = Name(self.aliases[stream], name.place)
        return ColumnName((alias, name), name.place)

    def column_before(self, stream: int, name: Name) -> ColumnName:
        """The column of that name in the streams before one, as USING means it."""
        found = [column for column in self._among_all(name.text) if column[0] < stream]
        if len({column[0] for column in found}) > 1:
            raise self._ambiguous(ColumnName((name,), name.place), name, found)
        if not found:
            raise self._unknown(name, range(stream))
        return self.column_of(found[0][0], name)

    def _in(self, stream: int, text: str) -> list[str]:
        names = self.schemas[stream].names
        return [names[number] for number in matching(text, names)]

    def _among_all(self, text: str) -> list[tuple[int, str]]:
        found = [
            (stream, column)
            for stream in range(len(self.aliases))
            for column in self._in(stream, text)
        ]
        return [each for each in found if each[1].lower() not in self.merged[each[0]]]

    def _one(
        self,
        name: ColumnName,
        written: Name,
        found: Sequence[tuple[int, str]],
        fields: Sequence[Name],
        among: Sequence[int],
    ) -> Found:
        if not found:
            raise self._unknown(written, among)
        if len(found) > 1:
            raise self._ambiguous(name, written, found)
        stream, column = found[0]
        return Found(stream, column, tuple(self._fields(stream, column, fields)))

    def _fields(self, stream: int, column: str, fields: Sequence[Name]) -> Iterator[str]:
        """Fields as the schema spells them; an error for those that it is known to lack."""
        kind: pa.DataType | None = self.type_of(stream, column)
        for field in fields:
            if kind is None:
                yield field.text
                continue
            if not pa.types.is_nested(kind):
                raise field.place.error(
                    f"{self.spell(stream, column)} is {kind}, without a field {field.text!r}",
                    hint="leave it out: only structs have fields",
                )
            if not pa.types.is_struct(kind):
                kind = None  # Spark looks into the elements of lists and maps too
                yield field.text
                continue
            names = [part.name for part in kind]
            at = matching(field.text, names)
            if not at:
                hint = nearest(field.text, names)
                raise field.place.error(f"unknown field {field.text!r}", hint=hint)
            yield names[at[0]]
            kind = kind.field(at[0]).type

    def _unknown(self, written: Name, among: Sequence[int]) -> QueryError:
        columns = [column for stream in among for column in self.schemas[stream].names]
        hint = nearest(written.text, list(dict.fromkeys(columns)))
        if written.place.text[written.place.lower] == '"' and hint.startswith("known"):
            hint = f"strings stand in single quotes, such as '{written.text}'"
        if written.text.lower() == WINDOW_END:
            hint = "only the rows of groups have it: use GROUP BY or an aggregate"
        of = f" of stream {self.aliases[among[0]]!r}" if len(among) == 1 else ""
        return written.place.error(f"unknown column {written.text!r}{of}", hint=hint)

    def _ambiguous(
        self, name: ColumnName, written: Name, found: Sequence[tuple[int, str]]
    ) -> QueryError:
        hint = f"it may mean {' or '.join(self.spell(*column) for column in found)}"
        if len(set(found)) < len(found):
            hint = "its stream has two columns of that name; rename one before the query"
        return name.place.error(f"ambiguous column {written.text!r}", hint=hint)

    def type_of(self, stream: int, column: str) -> pa.DataType:
        """The Arrow type of a column."""
        return self.schemas[stream].field(column).type

    def spell(self, stream: int, column: str) -> str:
        """A column as people write it."""
        return f"{self.aliases[stream]}.{column}"


def open_scope(streams: Sequence[FromItem], schemas: Schemas) -> Scope:
    """Look up the streams of FROM."""
    sources = tuple(find_source(item.source, list(schemas)) for item in streams)
    aliases: list[str] = []
    for item, source in zip(streams, sources, strict=True):
        alias = item.alias.text if item.alias else source
        if alias.lower() in (taken.lower() for taken in aliases):
            raise (item.alias or item.source).place.error(
                f"two streams are called {alias!r}",
                hint=f"give one of them an alias of its own, such as {source} … AS {source}2",
            )
        aliases.append(alias)
    merged = tuple(frozenset(name.text.lower() for name in item.using) for item in streams)
    return Scope(sources, tuple(aliases), tuple(schemas[source] for source in sources), merged)


def find_source(name: Name, known: Sequence[str]) -> str:
    """The known stream that a name means."""
    found = matching(name.text, known)
    if not found:
        hint = nearest(name.text, known)
        raise name.place.error(f"unknown stream {name.text!r}", hint=hint)
    if len(found) > 1:
        choices = " or ".join(known[number] for number in found)
        raise name.place.error(f"ambiguous stream {name.text!r}", hint=f"it may mean {choices}")
    return known[found[0]]
