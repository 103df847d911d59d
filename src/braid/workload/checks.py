"""The few questions that every field of a spec is asked, with one wording for the answers.

Each raises a `BraidError` that names the field; where the field sits in a file is added by
`braid.workload.spec_json`.
"""

from __future__ import annotations

import re

from braid.model.errors import BraidError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def require_number(field: str, value: object, lower: float, upper: float) -> None:
    """Demand a number from `lower` to `upper`, bounds included; NaN is outside any bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BraidError(f"{field} must be a number, not {value!r}")
    if not lower <= value <= upper:
        raise BraidError(f"{field} must be from {lower:,.12g} to {upper:,.12g}, not {value!r}")


def require_whole(field: str, value: object, lower: int, upper: int) -> None:
    """Demand a whole number from `lower` to `upper`, bounds included."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BraidError(f"{field} must be a whole number, not {value!r}")
    require_number(field, value, lower, upper)


def require_name(field: str, value: object) -> None:
    """Demand a word that is safe as a stream's name in a query and as a folder's name."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise BraidError(
            f"{field} must be a name, not {value!r}",
            hint="a name has letters, digits and underscores, and starts with no digit",
        )


def require_parts(field: str, value: object, kind: type) -> None:
    """Demand a tuple (in a file: a list) whose members are all of one kind."""
    if not isinstance(value, tuple):
        raise BraidError(f"{field} must be a list, not {value!r}")
    for part in value:
        if not isinstance(part, kind):
            raise BraidError(f"{field} must hold nothing but {kind.__name__}, not {part!r}")
