"""Sizes as people write them (`200MB`), and in bytes. A KB is 1,024 bytes."""

from __future__ import annotations

import re
from decimal import Decimal

from braid.model.errors import BraidError

UNIT_BYTES = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
"""Bytes in each unit; a number without one is of bytes."""

LARGEST_BYTES = 2**60
"""More than that is a typing error."""

_WRITTEN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_size(text: str) -> int:
    """Read a size such as `64KB`, `1.5 GB` or `4096` into bytes.

    >>> parse_size("64KB")
    65536
    """
    found = _WRITTEN.fullmatch(text)
    each = UNIT_BYTES.get(found[2].upper() or "B") if found else None
    if found is None or each is None:
        raise BraidError(
            f"cannot read the size {text!r}",
            hint="write a number and B, KB, MB, GB or TB, such as '200MB'",
        )
    size = round(Decimal(found[1]) * each)
    if size > LARGEST_BYTES:
        raise BraidError(
            f"the size {text!r} is too large", hint=f"the largest is {show_size(LARGEST_BYTES)}"
        )
    return size


def show_size(size_bytes: int) -> str:
    """Write a size with the largest unit that divides it.

    >>> show_size(1536 * 2**20)
    '1536MB'
    """
    for unit, each in reversed(UNIT_BYTES.items()):
        if size_bytes and size_bytes % each == 0:
            return f"{size_bytes // each}{unit}"
    return "0B"
