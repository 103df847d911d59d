"""Local paths as Spark is told of them, and as its streaming DataFrames tell of theirs.

To Spark a path without a scheme is one of its default file system, which need not be local. Its
paths look like URIs, but are not: nothing in them is escaped.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

_FILE_SOURCE = re.compile(r"FileSource\[(.*)\]", re.DOTALL)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)


def spark_path(path: Path) -> str:
    """A local path in Spark's spelling.

    >>> spark_path(Path("/data/50% [a]"))
    'file:///data/50% [a]'
    """
    return f"file://{path.absolute()}"


def local_inputs(frame: DataFrame) -> list[Path]:
    """The local folders that a streaming DataFrame reads; they may be patterns of names."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = []
    for leaf in map(leaves.apply, range(leaves.size())):
        if leaf.getClass().getSimpleName() == "StreamingRelation":
            source = _FILE_SOURCE.fullmatch(leaf.sourceName())
            path = source and _local(source[1], frame)
            if path:
                found.append(path)
    return found


def named_by(pattern: Path, places: Iterable[Path]) -> list[Path]:
    """The folders at or above some places that a path of Spark's names, and the path itself.

    Spark takes `*`, `?` and `[…]` for patterns; alternatives as in `{a,b}` are not looked at.
    """
    found = {pattern}
    for place in map(Path.resolve, places):
        above = (place, *place.parents)
        found.update(folder for folder in above if folder.match(str(pattern.resolve())))
    return sorted(found)


def _local(path: str, frame: DataFrame) -> Path | None:
    """The local path that Spark has in mind, if it is one."""
    given = _SCHEME.match(path)
    if given is not None:
        local = re.sub(r"^//[^/]*(?=/)", "", path[given.end() :])
        return Path(local) if given[1].lower() == "file" else None
    context = frame.sparkSession.sparkContext
    default = context._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///")
    return Path(path) if urlsplit(default).scheme == "file" else None
