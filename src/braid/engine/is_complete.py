"""Whether a file has been written to its end; readers wait for it if it has not."""

from __future__ import annotations

import os

SETTLED_S = 2.0
"""A CSV or JSON file that has not changed for so long is complete; Parquet tells by itself."""

_MAGIC = b"PAR1"  # a Parquet file begins and ends with it
_TAIL = 8  # the length of the footer, and the magic


def is_complete(path: str, now_s: float) -> bool:
    """Whether nobody writes to a file any more, as far as can be told from outside.

    A Parquet file ends with its footer. Others have come to rest; a time of change in the
    future says that clocks differ, and nothing else.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not path.lower().endswith(".parquet"):
                return abs(now_s - os.fstat(file.fileno()).st_mtime) >= SETTLED_S
            if size < len(_MAGIC) + _TAIL or file.read(len(_MAGIC)) != _MAGIC:
                return False
            file.seek(size - _TAIL)
            footer, magic = int.from_bytes(file.read(4), "little"), file.read(4)
            return magic == _MAGIC and footer <= size - len(_MAGIC) - _TAIL
    except FileNotFoundError:
        return False  # it was taken away again
