"""Which of a stream's own columns a bound query reads, in Spark's expressions and in ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from braid.model.expression import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from braid.model.query import Query


_PART = r"(?:[a-z_][a-z0-9_]*|`(?:[^`]|``)+`)"
_WORD = re.compile(rf"'(?:[^'\\]|\\.)*'|(?P<name>(?<!\w){_PART}(?:\.{_PART})*)(?P<call>\()?")
_FORMS = {"cast", "try_cast", "extract", "all", "any", "some"}
_TYPES = {"char", "character", "varchar", "dec", "decimal", "numeric", "time"}


def columns_of_stream(query: Query, number: int) -> frozenset[str]:
    """The names of the columns of a stream that a query needs, and of what those need."""
    stream = query.streams[number]
    history = () if stream.history is None else stream.history.partition
    texts = [derived.sql for derived in stream.derived]
    texts += [] if stream.filter is None else [stream.filter]
    ours = [
        *query.conditions,
        *query.results(),
        *(c for key in query.keys for c in key.columns),
    ]
    return frozenset(
        [
            *history,
            *(name for text in texts for name in _names(text)),
            *(c.column for each in ours for c in columns_of(each) if c.stream == number),
        ]
    )


def functions_of(query: Query, others: Iterable[str] = ()) -> list[str]:
    """The functions that only Spark knows: of a query's streams, and of other texts for it."""
    texts = [derived.sql for stream in query.streams for derived in stream.derived]
    texts += [stream.filter for stream in query.streams if stream.filter is not None]
    words = (word for text in [*texts, *others] for word in _WORD.finditer(text))
    return sorted({word["name"] for word in words if word["call"]} - _FORMS - _TYPES)


def _names(text: str) -> list[str]:
    """The names in a text for Spark, in which all of them stand in backticks."""
    return [name.replace("``", "`") for name in re.findall(r"`((?:[^`]|``)+)`", text)]
