"""Checks of what a record says before it becomes a path or a size.

A checksum finds damage, not forgery: whoever can write a record can seal it. So a name that is
read must not lead out of the folder that it is for. The checks raise a ValueError; whoever
reads the file turns it into an error that names the file.
"""

from __future__ import annotations

from typing import Any

_MOST_BYTES = 1 << 62
_MOST_DEPTH = 32  # of a record that we write, it is about ten


def checked_name(name: Any) -> str:
    """The name of a file or a folder, which is not a path."""
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file")
    return name


def checked_path(path: Any) -> str:
    """The path of a file below some folder."""
    if not isinstance(path, str):
        raise ValueError(f"{path!r} is not the path of a file")
    for name in path.split("/"):
        checked_name(name)
    return path


def checked_size(size: Any) -> int:
    """A number of bytes or rows."""
    if type(size) is not int or not 0 <= size < _MOST_BYTES:
        raise ValueError(f"{size!r} is not a size")
    return size


def checked_depth(data: Any) -> None:
    """Demand that a JSON value is not nested deeper than what we write."""
    nested = [data]
    for _ in range(_MOST_DEPTH):
        parts = (part.values() if isinstance(part, dict) else part for part in nested)
        nested = [each for part in parts for each in part if isinstance(each, dict | list)]
        if not nested:
            return
    raise ValueError(f"it is nested deeper than {_MOST_DEPTH} levels")
