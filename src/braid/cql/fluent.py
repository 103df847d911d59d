"""Queries from method calls: a `Draft` grows clause by clause into the text of a query.

    stream("a", range="10 seconds")
    .join("b", range="10 seconds", on="a.k = b.k")
    .where("a.v > b.v")
    .group_by("a.k")
    .having("count(*) > 3")
    .select("a.k", "count(*) AS n")

Nothing here knows what a query means: the text goes the way of any other, and so its errors are
the same. A fragment has to be whole in itself, so that it says the same wherever it is put.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import TokenType

from braid.cql.bind import bind
from braid.cql.quote import spelled
from braid.cql.sql import check_brackets, read_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.cql.event_time import EventTimes
    from braid.cql.types import Typing
    from braid.model.query import Query, Schemas

Length = str | dt.timedelta
"""A length of time, such as `10 seconds`."""

_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Draft:
    """A query so far. Every method returns a new draft; this one stays as it is.

    Clauses may come in any order and more than once: conditions then hold together, and columns
    and keys follow one another. Without `select` the result has all columns.
    """

    streams: tuple[str, ...]
    columns: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    group_conditions: tuple[str, ...] = ()

    def join(
        self,
        name: str,
        *,
        on: str | None = None,
        using: str | Sequence[str] = (),
        range: Length | None = None,
        slide: Length | None = None,
        rows: int | None = None,
        partition_by: str | Sequence[str] = (),
        unbounded: bool = False,
        alias: str | None = None,
    ) -> Draft:
        """Join one more stream; without `on` or `using` the condition is left to `where`."""
        item = _item(name, range, slide, rows, partition_by, unbounded, alias)
        if on is not None:
            item = f"JOIN {item} ON {_fragment(on)}"
        elif using:
            item = f"JOIN {item} USING ({_names(using)})"
        else:
            item = f"CROSS JOIN {item}"
        return replace(self, streams=(*self.streams, item))

    def where(self, *conditions: str) -> Draft:
        """Keep the combinations that fulfil all conditions."""
        return replace(self, conditions=(*self.conditions, *map(_fragment, conditions)))

    def group_by(self, *keys: str) -> Draft:
        """Make one row of each group at every slide."""
        return replace(self, keys=(*self.keys, *map(_fragment, keys)))

    def having(self, *conditions: str) -> Draft:
        """Keep the groups that fulfil all conditions."""
        found = (*self.group_conditions, *map(_fragment, conditions))
        return replace(self, group_conditions=found)

    def select(self, *columns: str) -> Draft:
        """Add columns to the result: expressions, perhaps with `AS name`."""
        return replace(self, columns=(*self.columns, *map(_fragment, columns)))

    @property
    def text(self) -> str:
        """The query as text, a clause to a line.

        >>> draft = stream("a", range="1 day").join("b", range="1 day", on="a.k = b.k")
        >>> print(draft.where("a.v > 1").where("b.v > 1 OR b.v < 0").select("a.k", "b.v").text)
        SELECT a.k, b.v
        FROM a [RANGE 1 day]
        JOIN b [RANGE 1 day] ON a.k = b.k
        WHERE (a.v > 1)
          AND (b.v > 1 OR b.v < 0)
        """
        lines = [f"SELECT {', '.join(self.columns or ('*',))}", f"FROM {self.streams[0]}"]
        lines += self.streams[1:]
        if self.conditions:
            lines.append(f"WHERE {_all_of(self.conditions)}")
        if self.keys:
            lines.append(f"GROUP BY {', '.join(self.keys)}")
        if self.group_conditions:
            lines.append(f"HAVING {_all_of(self.group_conditions)}")
        return "\n".join(lines)

    def bind(
        self, schemas: Schemas, *, event_time: EventTimes, typing: Typing | None = None
    ) -> Query:
        """Bind the text, as `braid.cql.bind` does."""
        return bind(self.text, schemas, event_time=event_time, typing=typing)


def stream(
    name: str,
    *,
    range: Length | None = None,
    slide: Length | None = None,
    rows: int | None = None,
    partition_by: str | Sequence[str] = (),
    unbounded: bool = False,
    alias: str | None = None,
) -> Draft:
    """Begin a query with one stream and its window.

    The window is a `range`, or `unbounded`, either with a `slide` if the query has groups; or
    the newest `rows` of each partition.
    """
    return Draft((_item(name, range, slide, rows, partition_by, unbounded, alias),))


def _item(
    name: str,
    range: Length | None,
    slide: Length | None,
    rows: int | None,
    partition_by: str | Sequence[str],
    unbounded: bool,
    alias: str | None,
) -> str:
    """An entry of FROM; a window that makes no sense is written all the same, for `bind`."""
    parts = [
        f"RANGE {_length(range)}" if range is not None else "",
        "UNBOUNDED" if unbounded else "",
        f"PARTITION BY {_names(partition_by)}" if partition_by else "",
        f"ROWS {rows}" if rows is not None else "",
        f"SLIDE {_length(slide)}" if slide is not None else "",
    ]
    window = " ".join(part for part in parts if part)
    item = f"{spelled(name)} [{window}]" if window else spelled(name)
    return item if alias is None else f"{item} AS {spelled(alias)}"


def _length(length: Length) -> str:
    if isinstance(length, str):
        return _fragment(length)
    whole, rest = divmod(length // _MICROSECOND, 1000)
    return f"{whole}.{rest:03} MILLISECONDS"


def _names(names: str | Sequence[str]) -> str:
    return ", ".join(spelled(name) for name in ([names] if isinstance(names, str) else names))


def _all_of(conditions: Sequence[str]) -> str:
    if len(conditions) == 1:
        return conditions[0]
    return "\n  AND ".join(f"({condition})" for condition in conditions)


def _fragment(text: str) -> str:
    """A part of a query that is whole in itself, without the comments around it."""
    words = read_words(text)
    if not words.tokens:
        raise words.everything().error("there is nothing here", hint="leave the argument out")
    check_brackets(words)
    for token in words.tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise words.at(token).error("a part of a query has no ';'", hint="leave it out")
    return text[words.tokens[0].start : words.tokens[-1].end + 1]
