"""The few questions that are asked of parameters, with one wording each."""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import TYPE_CHECKING

from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Iterable


def require_between(name: str, value: object, lower: float, upper: float) -> None:
    """Demand a number above `lower` and below `upper`, neither of them included."""
    _require_number(name, value)
    if not lower < value < upper:  # type: ignore[operator]  # it is a number
        above = f"above {lower:g}"
        wanted = above if upper == math.inf else f"{above} and below {upper:g}"
        raise BraidError(f"{name} must be {wanted}, not {value!r}")


def require_from(name: str, value: object, lower: float) -> None:
    """Demand a finite number that is not below `lower`."""
    _require_number(name, value)
    if not lower <= value < math.inf:  # type: ignore[operator]  # it is a number
        raise BraidError(f"{name} must be at least {lower:g}, not {value!r}")


def require_up_to(name: str, value: object, upper: float) -> None:
    """Demand a number above 0 and not above `upper`."""
    _require_number(name, value)
    if not 0 < value <= upper:  # type: ignore[operator]  # it is a number
        raise BraidError(f"{name} must be above 0 and at most {upper:g}, not {value!r}")


def require_within(name: str, value: object, lower: float, upper: float = math.inf) -> None:
    """Demand a number from `lower` to `upper`, both included."""
    _require_number(name, value)
    if not lower <= value <= upper:  # type: ignore[operator]  # it is a number
        wanted = f"{lower:g} or more" if upper == math.inf else f"from {lower:g} to {upper:g}"
        raise BraidError(f"{name} is {value!r}", hint=f"give a number, {wanted}")


def require_known(what: str, name: object, known: Iterable[str]) -> None:
    """Demand one of some names; the hint is at the nearest of them."""
    names = list(known)
    if isinstance(name, str) and name in names:
        return
    close = get_close_matches(str(name).lower()[:100], names, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names) or 'none'}"
    raise BraidError(f"unknown {what} {name!r}", hint=hint)


def _require_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BraidError(f"{name} must be a number, not {value!r}")
