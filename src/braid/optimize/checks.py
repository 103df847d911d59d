"""The one question that optimizers ask of their parameters."""

from __future__ import annotations

import math

from braid.model.errors import BraidError


def require_number(
    what: str, value: object, lower: float = 0.0, upper: float = math.inf
) -> None:
    """Demand a number from `lower` to `upper`, both included."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not lower <= value <= upper:  # type: ignore[operator]  # it is a number
        wanted = f"{lower:g} or more" if upper == math.inf else f"from {lower:g} to {upper:g}"
        raise BraidError(f"{what} is {value!r}", hint=f"give a number, {wanted}")
