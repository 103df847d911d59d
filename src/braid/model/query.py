"""A bound query: which streams, over which windows, on which key, and what comes out.

Made by `braid.cql` from text and schemas. Column names here are known to exist and key columns
to agree in type; nothing downstream checks them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

Schemas = Mapping[str, pa.Schema]
"""The columns of every stream that a query may name."""


@dataclass(frozen=True, slots=True)
class StreamRef:
    """One place of a stream in FROM; a self-join has two of the same source.

    Rows of this stream take part in a result for as long as no member of the result is
    more than `window_us` younger: `max(ts) - ts_i <= window_us`, bounds included.
    """

    source: str
    alias: str
    window_us: int
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the result: `streams[stream].column`, under a name of its own."""

    name: str
    stream: int
    column: str


@dataclass(frozen=True, slots=True)
class Query:
    """An m-way window join on one key; streams are numbered by their place in FROM."""

    text: str
    streams: tuple[StreamRef, ...]
    output: tuple[OutputColumn, ...]

    def sources(self) -> tuple[str, ...]:
        """The distinct sources, in the order of FROM."""
        return tuple(dict.fromkeys(stream.source for stream in self.streams))

    def columns(self, stream: int) -> tuple[str, ...]:
        """The payload columns of one stream that results need; its key columns come beside."""
        needed = (out.column for out in self.output if out.stream == stream)
        return tuple(c for c in dict.fromkeys(needed) if c not in self.streams[stream].key)
