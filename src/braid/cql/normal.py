"""The normal form of a query: one text for all spellings of it, which binds to it again.

A checkpoint keeps it as a fingerprint, so this text must not change between releases, nor with
the version of sqlglot. Aliases and the order of streams, columns and key parts are kept.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from braid.model.duration import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from braid.model.query import OutputColumn, Query, StreamRef

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_RESERVED = re.compile(
    "ALL|ALTER|AND|ANY|AS|BETWEEN|CASE|CONNECT_BY_ROOT|CREATE|CROSS|CURRENT_[A-Z]+|DESCRIBE"
    "|DISTINCT|DROP|ELSE|EXCEPT|FALSE|FETCH|FOR|FROM|GLOB|GRANT|HAVING|ILIKE|INNER|INSERT"
    "|INTERSECT|INTO|JOIN|LATERAL|LIKE|LIMIT|NOT|NOTNULL|NULL|ON|OR|OUTER|PARTITIONED_BY"
    "|QUALIFY|REGEXP|RETURNING|REVOKE|RLIKE|ROLLBACK|SELECT|TABLESAMPLE|THEN|TRUE|UNCACHE"
    "|UNION|USING|VALUES|WHEN|WHERE|WITH|XOR",
    re.IGNORECASE,
)
"""What sqlglot 30 does not take for a name everywhere. To change it changes fingerprints."""


def normal_text(query: Query) -> str:
    """Write a bound query; its own `text` is not looked at."""
    select = ", ".join(_output(query, out) for out in query.output)
    streams = ", ".join(_stream(stream) for stream in query.streams)
    return f"SELECT {select} FROM {streams} WHERE {' AND '.join(_equalities(query))}"


def _output(query: Query, out: OutputColumn) -> str:
    column = f"{_quote(query.streams[out.stream].alias)}.{_quote(out.column)}"
    return column if out.name == out.column else f"{column} AS {_quote(out.name)}"


def _stream(stream: StreamRef) -> str:
    window = f"{_quote(stream.source)} [RANGE {_length(stream.window_us)}]"
    return window if stream.alias == stream.source else f"{window} AS {_quote(stream.alias)}"


def _length(window_us: int) -> str:
    whole, rest = divmod(window_us, 1000)
    return f"{whole}.{rest:03} MILLISECONDS" if rest else format_duration(window_us).upper()


def _equalities(query: Query) -> Iterator[str]:
    for part in range(len(query.streams[0].key)):
        columns = [f"{_quote(s.alias)}.{_quote(s.key[part])}" for s in query.streams]
        yield from (f"{left} = {right}" for left, right in pairwise(columns))


def _quote(name: str) -> str:
    if _PLAIN.fullmatch(name) and not _RESERVED.fullmatch(name):
        return name
    return "`" + name.replace("`", "``") + "`"
